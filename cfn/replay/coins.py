"""Replay buffer B_c of the Coin Flip Network (Algorithm 1): one entry per visit, with its frame and its coin flips."""

from typing import Any, Literal, NamedTuple

import numba
import numpy as np

from cfn.replay.frames import FrameStore
from cfn.replay.growing_arrays import grow
from cfn.replay.ring import kept, require_drawn, require_like
from cfn.replay.sum_tree import SumTree
from cfn.types import Array

NEW_PRIORITY = 1.0
"""Priority of an entry that was never sampled: Eq. 6 for a state visited once."""
CANDIDATES = 16
"""Entries of which eviction by novelty discards the most familiar one."""

Eviction = Literal["fifo", "novelty"]
"""Entries that a full buffer discards: the oldest, or preferably those of little novelty."""


@numba.njit(cache=True)
def _groups(keys: Array, order: Array) -> tuple[Array, Array, Array]:
    """Return the distinct keys, the index of each key into them, and their numbers: `np.unique` sorts twice.

    Args:
        keys: Keys of the entries.
        order: Order that sorts the keys.
    """
    distinct, inverse, repeats = np.empty_like(keys), np.empty(len(keys), np.int64), np.zeros(len(keys), np.int64)
    group = -1
    for entry in order:
        if group < 0 or keys[entry] != distinct[group]:
            group += 1
            distinct[group] = keys[entry]
        inverse[entry] = group
        repeats[group] += 1
    return distinct[: group + 1], inverse, repeats[: group + 1]


class CoinBatch(NamedTuple):
    """Entries sampled from the buffer, grouped by frame, or by frame and action.

    Attributes:
        entries: Positions of the sampled entries in the ring, for `update_priorities`.
        slots: Keys of the groups: the slot of the frame; with actions, slot * number of actions + action.
        inverse: Index into `slots`, for each entry.
        repeats: Number of entries of each group.
        mean_flips: Mean flips over the entries of each group.
        flips_square: Mean of the squared flips, over entries and coins (1 for coins).
        drawn: Number of entries ever added to the buffer, at the time of sampling.
        frames: Frame of each group.
        features: Features of these frames, from the frame store.
    """

    entries: Array
    slots: Array
    inverse: Array
    repeats: Array
    mean_flips: Array
    flips_square: float
    drawn: int
    frames: Array
    features: Array


class CoinReplay:
    """Entries (frame, flips), sampled by priority. A new entry of a full buffer overwrites an old one.

    By default the buffer is a ring that overwrites the oldest entry. Eviction by novelty overwrites the most familiar
    of a few random entries. A frame with k entries has the novelty 1 / k, the squared bonus of k visits; a frame with
    one entry, as in continuous spaces, has that of its priority. So states lose entries until all have about equally
    many, however long ago their visits were, where a ring forgets every state that was not visited lately.

    Args:
        capacity: Maximum number of entries.
        d: Number of flips per entry.
        frames: Store of the frames.
        coins: Whether flips are -1 or 1 and stored as bits; other flips are stored as floats.
        prioritize: Whether to sample by priority (Section 3.5.1) or uniformly.
        alpha: Weight of 1 / (n_updates + 1) against |f(s)|^2 / d in the priority (Eq. 6).
        owns_frames: Whether the frame store belongs to this buffer alone and is saved with it.
        eviction: Entries that a full buffer discards; `novelty` needs priorities.
        rng: Source of randomness of the eviction by novelty; its owner saves it.
        actions: Number of actions, to count state-action pairs; 1: states are counted.
    """

    def __init__(
        self,
        capacity: int,
        d: int,
        frames: FrameStore,
        coins: bool = True,
        prioritize: bool = True,
        alpha: float = 0.5,
        owns_frames: bool = False,
        eviction: Eviction = "fifo",
        rng: np.random.Generator | None = None,
        actions: int = 1,
    ) -> None:
        self.frames, self._owns_frames = frames, owns_frames
        self._capacity, self._d, self._coins = capacity, d, coins
        self._prioritize, self._alpha = prioritize, alpha
        self._slots = np.zeros(capacity, np.int32)
        self._flips: Array = (
            np.zeros((capacity, -(-d // 8)), np.uint8) if coins else np.zeros((capacity, d), np.float32)
        )
        self._updates = np.zeros(capacity, np.uint32)
        self._num_actions = actions
        self._actions = np.zeros(capacity if actions > 1 else 0, np.int32)
        self._tree = SumTree(capacity)
        self._added = 0
        self._rng = rng if eviction == "novelty" else None
        self._repeats = np.zeros(0, np.int32)  # entries of each frame, or frame and action; only to evict by novelty
        self._born = np.zeros(capacity if self._rng else 0, np.int64)  # number of additions before each entry's

    @staticmethod
    def bytes_of(d: int, coins: bool = True, eviction: Eviction = "fifo") -> int:
        """Return the bytes per entry, without its frame."""
        return 4 + (-(-d // 8) if coins else 4 * d) + 4 + SumTree.BYTES + 12 * (eviction == "novelty")

    def __len__(self) -> int:
        return min(self._added, self._capacity)

    def add(self, slots: Array, flips: Array, actions: Array | None = None) -> None:
        """Add an entry per slot, overwriting the oldest entries of a full buffer and releasing their frames.

        The buffer takes the caller's references to the frames. Actions are needed to count state-action pairs.
        """
        for row, (slot, flip) in enumerate(zip(slots, flips, strict=True)):
            entry = self._next_entry()
            if self._added >= self._capacity:
                self._count_repeats(entry, -1)
                self.frames.release(self._slots[entry : entry + 1])
            self._slots[entry] = slot
            self._flips[entry] = np.packbits(flip > 0) if self._coins else flip
            self._updates[entry] = 0
            if self._num_actions > 1:
                assert actions is not None
                self._actions[entry] = actions[row]
            self._tree[np.array([entry])] = np.array([NEW_PRIORITY])
            if self._rng is not None:
                self._born[entry] = self._added
            self._count_repeats(entry, 1)
            self._added += 1

    def _next_entry(self) -> int:
        """Return the entry that the next addition goes to."""
        if self._rng is None or self._added < self._capacity:
            return self._added % self._capacity
        candidates = self._rng.integers(self._capacity, size=CANDIDATES)
        repeats = self._repeats[self._keys(candidates)]
        novelty = np.where(repeats > 1, 1 / repeats, self._tree[candidates])
        return int(candidates[novelty.argmin()])

    def _keys(self, entries: Array) -> Array:
        """Return a number for the frame of each entry, or for its frame and action."""
        slots: Array = self._slots[entries]
        return slots * self._num_actions + self._actions[entries] if self._num_actions > 1 else slots

    def _count_repeats(self, entry: int, change: int) -> None:
        if self._rng is not None:
            (key,) = self._keys(np.array([entry]))
            if key >= len(self._repeats):
                grow(self, "_repeats", max(2 * len(self._repeats), int(key) + 1))
            self._repeats[key] += change

    def sample(self, count: int, rng: np.random.Generator) -> CoinBatch:
        """Sample entries with replacement, in proportion to their priorities or uniformly."""
        entries = self._tree.sample(count, rng) if self._prioritize else rng.integers(len(self), size=count)
        keys = self._keys(entries)
        order = np.argsort(keys, kind="stable")
        keys, inverse, repeats = _groups(keys, order)
        slots = keys // self._num_actions
        flips = self.flips(entries)
        sums = np.add.reduceat(flips[order], np.cumsum(repeats) - repeats, axis=0)
        square = 1.0 if self._coins else float(np.mean(flips**2))
        return CoinBatch(
            entries,
            keys,
            inverse,
            repeats,
            sums / repeats[:, None].astype(np.float32),
            square,
            self._added,
            self.frames[slots],
            self.frames.features[slots],
        )

    def as_batch(self, *fields: Any) -> CoinBatch:
        """Return a batch from its saved fields; raise `ValueError` if it cannot come from this buffer."""
        batch = CoinBatch(*fields)
        require_like(batch, self.sample(1, np.random.default_rng(0)))
        require_drawn(batch.entries, batch.drawn, self._added, len(self))
        distinct = {len(a) for a in (batch.slots, batch.repeats, batch.mean_flips, batch.frames, batch.features)}
        if len(batch.entries) != len(batch.inverse) or distinct != {len(batch.slots)}:
            raise ValueError("a saved batch has arrays of different lengths")
        return batch

    def flips(self, entries: Array) -> Array:
        """Return the flips of entries."""
        if not self._coins:
            flips: Array = self._flips[entries]
            return flips
        bits = np.unpackbits(self._flips[entries], axis=1, count=self._d)
        return bits.astype(np.float32) * 2 - 1

    def update_priorities(self, batch: CoinBatch, novelty: Array) -> None:
        """Set the priorities of a batch to alpha / (n_updates + 1) + (1 - alpha) |f(s)|^2 / d (Eq. 6).

        Entries that were overwritten after the batch was sampled are skipped.

        Args:
            batch: Batch of an update.
            novelty: |f(s)|^2 / d of each distinct frame.
        """
        if self._rng is None:
            still = kept(batch.entries, batch.drawn, self._added, self._capacity)
        else:
            still = self._born[batch.entries] < batch.drawn
        entries, inverse = batch.entries[still], batch.inverse[still]
        np.add.at(self._updates, entries, 1)
        if self._prioritize:
            by_updates = self._alpha / (self._updates[entries] + 1.0)
            self._tree[entries] = by_updates + (1 - self._alpha) * novelty[inverse]

    def state_dict(self) -> dict[str, Any]:
        size = len(self)
        return {
            "slots": self._slots[:size],
            "flips": self._flips[:size],
            "updates": self._updates[:size],
            "added": self._added,
            **self._tree.state_dict(size),
            **({"born": self._born[:size]} if self._rng else {}),
            **({"actions": self._actions[:size]} if self._num_actions > 1 else {}),
            **({"frames": self.frames.state_dict()} if self._owns_frames else {}),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        size, expected = len(state["slots"]), min(state["added"], self._capacity)
        if size != expected:
            raise ValueError(f"the coin-flip replay buffer has {size:,} entries instead of {expected:,}")
        self._slots[:size], self._flips[:size], self._updates[:size] = state["slots"], state["flips"], state["updates"]
        self._added = state["added"]
        self._tree.load_state_dict(state)
        if self._num_actions > 1:
            self._actions[:size] = state["actions"]
        if self._rng is not None:
            self._born[:size] = state["born"]
            self._repeats = np.bincount(self._keys(np.arange(size))).astype(np.int32)
        if self._owns_frames:
            self.frames.load_state_dict(state["frames"])
