"""Replay buffer B of an agent (Algorithm 1): n-step transitions between states, which are stacks of frames."""

from typing import Any, NamedTuple

import numpy as np

from cfn.replay.frames import FrameStore
from cfn.replay.n_step import Transition
from cfn.replay.ring import kept, require_drawn, require_like
from cfn.replay.sum_tree import SumTree
from cfn.types import Array


class TransitionBatch(NamedTuple):
    """Transitions sampled from the buffer.

    Attributes:
        entries: Positions of the sampled transitions in the ring, for `update_priorities`.
        states: Observations: frames, or stacks of frames along the last dimension.
        actions: Actions taken in these states.
        rewards: Discounted sums of the rewards of each transition.
        discounts: Discounts of the values of the next states; 0 after a termination.
        next_states: Observations at the end of each transition.
        weights: Importance weights, scaled so that the largest is 1.
        drawn: Number of transitions ever added to the buffer, at the time of sampling.
    """

    entries: Array
    states: Array
    actions: Array
    rewards: Array
    discounts: Array
    next_states: Array
    weights: Array
    drawn: int


class TransitionReplay:
    """Ring of transitions; a new transition overwrites the oldest.

    A state is stored as the slots of its frames. Stacks are rebuilt when they are sampled, and a frame that several
    stacks, transitions or buffers share is stored once.

    Args:
        capacity: Maximum number of transitions.
        stack: Frames per state.
        frames: Store of the frames.
        action: Example of an action, for its shape and type.
        prioritize: Whether to sample in proportion to priorities (Schaul et al., 2016) or uniformly.
        owns_frames: Whether the frame store belongs to this buffer alone and is saved with it.
    """

    def __init__(
        self,
        capacity: int,
        stack: int,
        frames: FrameStore,
        action: Array,
        prioritize: bool = True,
        owns_frames: bool = False,
    ) -> None:
        self.frames, self.stack, self._owns_frames = frames, stack, owns_frames
        self._capacity = capacity
        self._states, self._next_states = (np.zeros((capacity, stack), np.int32) for _ in range(2))
        self._actions = np.zeros((capacity, *action.shape), action.dtype)
        self._rewards, self._discounts = (np.zeros(capacity, np.float32) for _ in range(2))
        self._tree = SumTree(capacity) if prioritize else None
        self._highest_priority = 1.0
        self._added = 0

    @staticmethod
    def bytes_of(stack: int, action: Array, prioritize: bool = True) -> int:
        """Return the bytes per transition, without its frames."""
        return 2 * stack * 4 + action.nbytes + 2 * 4 + (SumTree.BYTES if prioritize else 0)

    def __len__(self) -> int:
        return min(self._added, self._capacity)

    def add(self, transition: Transition[Array]) -> None:
        """Add a transition with the highest priority so far, so that it is soon sampled.

        The buffer takes the caller's references to the frames of `state`, and adds its own to those of `next_state`.
        """
        entry = self._added % self._capacity
        if self._added >= self._capacity:
            self.frames.release(np.concatenate([self._states[entry], self._next_states[entry]]))
        self.frames.hold(transition.next_state)
        self._states[entry], self._next_states[entry] = transition.state, transition.next_state
        self._actions[entry] = transition.action
        self._rewards[entry], self._discounts[entry] = transition.reward, transition.discount
        if self._tree is not None:
            self._tree[np.array([entry])] = np.array([self._highest_priority])
        self._added += 1

    def sample(self, count: int, rng: np.random.Generator) -> TransitionBatch:
        """Sample transitions with replacement; weights are 1 / sqrt(priority), as in the published runs."""
        if self._tree is None:
            entries, weights = rng.integers(len(self), size=count), np.ones(count)
        else:
            entries = self._tree.sample(count, rng)
            weights = self._tree[entries] ** -0.5
        return TransitionBatch(
            entries,
            self._observations(self._states[entries]),
            self._actions[entries],
            self._rewards[entries],
            self._discounts[entries],
            self._observations(self._next_states[entries]),
            (weights / weights.max()).astype(np.float32),
            self._added,
        )

    def as_batch(self, *fields: Any) -> TransitionBatch:
        """Return a batch from its saved fields; raise `ValueError` if it cannot come from this buffer."""
        batch = TransitionBatch(*fields)
        require_like(batch, self.sample(1, np.random.default_rng(0)))
        require_drawn(batch.entries, batch.drawn, self._added, len(self))
        if len({len(array) for array in batch[:-1]}) != 1:
            raise ValueError("a saved batch has arrays of different lengths")
        return batch

    def _observations(self, states: Array) -> Array:
        return self.frames[states[:, 0]] if states.shape[1] == 1 else np.moveaxis(self.frames[states], 1, -1)

    def update_priorities(self, batch: TransitionBatch, priorities: Array) -> None:
        """Set the priorities of a batch, except for transitions that were overwritten after it was sampled."""
        assert self._tree is not None, "the buffer has priorities"
        still = kept(batch.entries, batch.drawn, self._added, self._capacity)
        self._tree[batch.entries[still]] = priorities[still]
        self._highest_priority = max(self._highest_priority, float(priorities.max()))

    def state_dict(self) -> dict[str, Any]:
        names = ("states", "next_states", "actions", "rewards", "discounts")
        return {
            **{name: getattr(self, f"_{name}")[: len(self)] for name in names},
            **(self._tree.state_dict(len(self)) if self._tree else {}),
            **({"frames": self.frames.state_dict()} if self._owns_frames else {}),
            "highest_priority": self._highest_priority,
            "added": self._added,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        size, expected = len(state["states"]), min(state["added"], self._capacity)
        if size != expected:
            raise ValueError(f"the replay buffer has {size:,} transitions instead of {expected:,}")
        for name in ("states", "next_states", "actions", "rewards", "discounts"):
            getattr(self, f"_{name}")[: len(state[name])] = state[name]
        if self._tree:
            self._tree.load_state_dict(state)
        self._highest_priority, self._added = state["highest_priority"], state["added"]
        if self._owns_frames:
            self.frames.load_state_dict(state["frames"])
