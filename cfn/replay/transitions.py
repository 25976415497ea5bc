"""An agent's replay buffer B (Algorithm 1): n-step transitions whose states are stacks of frames, each frame once."""

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
        entries: What was sampled, for `update_priorities`.
        states: Observations as the environment gave them: frames, or stacks of frames along the last dimension.
        actions: What was done in them.
        rewards: n-step returns.
        discounts: Of the value of what comes after; 0 if nothing does.
        next_states: What comes after.
        weights: Importance weights, the largest 1.
        drawn: How many transitions had been added when it was sampled.
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
    """A ring of transitions; the oldest makes room for the newest.

    A state is the slots of its stacked frames, so stacks are rebuilt when they are sampled, and frames that stacks,
    transitions or other buffers share are kept once.

    Args:
        capacity: How many transitions are kept.
        stack: Frames per state.
        frames: Where the frames are.
        action: An action, for its shape and type.
        prioritize: Whether to sample in proportion to priorities (Schaul et al., 2016) or uniformly.
        owns_frames: Whether the frames are nobody else's, and so are part of this buffer's state.
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
        """What one entry takes, beside its frames."""
        return 2 * stack * 4 + action.nbytes + 2 * 4 + (SumTree.BYTES if prioritize else 0)

    def __len__(self) -> int:
        return min(self._added, self._capacity)

    def add(self, transition: Transition[Array]) -> None:
        """Add a transition, whose `state` the caller hands over and whose `next_state` it goes on holding.

        It gets the highest priority that there ever was, so that it is soon learned from.
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
        """Draw transitions, with replacement; weights are 1 / sqrt(priority), as in the published runs."""
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
        """A batch from its fields, which were saved when it was drawn; refused if it was not drawn from here."""
        batch = TransitionBatch(*fields)
        require_like(batch, self.sample(1, np.random.default_rng(0)))
        require_drawn(batch.entries, batch.drawn, self._added, len(self))
        if len({len(array) for array in batch[:-1]}) != 1:
            raise ValueError("a saved batch has arrays of different lengths")
        return batch

    def _observations(self, states: Array) -> Array:
        return self.frames[states[:, 0]] if states.shape[1] == 1 else np.moveaxis(self.frames[states], 1, -1)

    def update_priorities(self, batch: TransitionBatch, priorities: Array) -> None:
        """Set the priorities of what was sampled, but for what was overwritten since."""
        assert self._tree is not None, "there are priorities"
        still = kept(batch.entries, batch.drawn, self._added, self._capacity)
        self._tree[batch.entries[still]] = priorities[still]
        self._highest_priority = max(self._highest_priority, float(priorities.max()))

    def state_dict(self) -> dict[str, Any]:
        """Transitions and priorities; and the frames, if its own."""
        names = ("states", "next_states", "actions", "rewards", "discounts")
        return {
            **{name: getattr(self, f"_{name}")[: len(self)] for name in names},
            **(self._tree.state_dict(len(self)) if self._tree else {}),
            **({"frames": self.frames.state_dict()} if self._owns_frames else {}),
            "highest_priority": self._highest_priority,
            "added": self._added,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over all of it."""
        if len(state["states"]) != min(state["added"], self._capacity):
            raise ValueError(f"the buffer holds {len(state['states']):,} of {state['added']:,} transitions")
        for name in ("states", "next_states", "actions", "rewards", "discounts"):
            getattr(self, f"_{name}")[: len(state[name])] = state[name]
        if self._tree:
            self._tree.load_state_dict(state)
        self._highest_priority, self._added = state["highest_priority"], state["added"]
        if self._owns_frames:
            self.frames.load_state_dict(state["frames"])
