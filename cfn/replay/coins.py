"""The Coin Flip Network's replay buffer B_c (Algorithm 1): visited states, each with the coins flipped for it."""

from typing import Any, NamedTuple

import numpy as np

from cfn.replay.frames import FrameStore
from cfn.replay.ring import kept, require_drawn, require_like
from cfn.replay.sum_tree import SumTree
from cfn.types import Array

NEW_PRIORITY = 1.0
"""Of an entry never sampled: that of Eq. 6 for a state seen once."""


class CoinBatch(NamedTuple):
    """Entries sampled from the buffer, with equal frames folded into one.

    Attributes:
        entries: What was sampled, for `update_priorities`.
        slots: The distinct frames among them.
        inverse: For each entry, which of `slots` is its frame.
        repeats: How many entries each distinct frame has.
        mean_flips: The mean of their coin vectors.
        flips_square: Mean over entries and coins of the squared flips (1 for coins).
        drawn: How many entries had been added when it was sampled.
        frames: The distinct frames themselves.
        features: What is kept beside them.
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
    """A ring of entries (frame, flips), sampled by priority; the oldest makes room for the newest.

    Args:
        capacity: How many entries are kept.
        d: Coins per entry.
        frames: Where the frames are.
        coins: Whether flips are -1 or 1, and so kept as bits; other flips are kept as they are.
        prioritize: Whether to sample by priority (Section 3.5.1) or uniformly.
        alpha: The weight of novelty to the number of updates in the priority (Eq. 6).
        owns_frames: Whether the frames are nobody else's, and so are part of this buffer's state.
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
    ) -> None:
        self.frames, self._owns_frames = frames, owns_frames
        self._capacity, self._d, self._coins = capacity, d, coins
        self._prioritize, self._alpha = prioritize, alpha
        self._slots = np.zeros(capacity, np.int32)
        self._flips: Array = (
            np.zeros((capacity, -(-d // 8)), np.uint8) if coins else np.zeros((capacity, d), np.float32)
        )
        self._updates = np.zeros(capacity, np.uint32)
        self._tree = SumTree(capacity)
        self._added = 0

    @staticmethod
    def bytes_of(d: int, coins: bool = True) -> int:
        """What one entry takes, beside its frame."""
        return 4 + (-(-d // 8) if coins else 4 * d) + 4 + SumTree.BYTES

    def __len__(self) -> int:
        return min(self._added, self._capacity)

    def add(self, slots: Array, flips: Array) -> None:
        """Add an entry for each slot, which the caller holds a reference to; what is overwritten lets its frame go."""
        for slot, flip in zip(slots, flips, strict=True):
            entry = self._added % self._capacity
            if self._added >= self._capacity:
                self.frames.release(self._slots[entry : entry + 1])
            self._slots[entry] = slot
            self._flips[entry] = np.packbits(flip > 0) if self._coins else flip
            self._updates[entry] = 0
            self._tree[np.array([entry])] = np.array([NEW_PRIORITY])
            self._added += 1

    def sample(self, count: int, rng: np.random.Generator) -> CoinBatch:
        """Draw entries, with replacement, in proportion to their priorities."""
        entries = self._tree.sample(count, rng) if self._prioritize else rng.integers(len(self), size=count)
        slots, inverse, repeats = np.unique(self._slots[entries], return_inverse=True, return_counts=True)
        flips = self.flips(entries)
        order = np.argsort(inverse, kind="stable")
        sums = np.add.reduceat(flips[order], np.cumsum(repeats) - repeats, axis=0)
        square = 1.0 if self._coins else float(np.mean(flips**2))
        return CoinBatch(
            entries,
            slots,
            inverse,
            repeats,
            sums / repeats[:, None].astype(np.float32),
            square,
            self._added,
            self.frames[slots],
            self.frames.features[slots],
        )

    def as_batch(self, *fields: Any) -> CoinBatch:
        """A batch from its fields, which were saved when it was drawn; refused if it was not drawn from here."""
        batch = CoinBatch(*fields)
        require_like(batch, self.sample(1, np.random.default_rng(0)))
        require_drawn(batch.entries, batch.drawn, self._added, len(self))
        distinct = {len(a) for a in (batch.slots, batch.repeats, batch.mean_flips, batch.frames, batch.features)}
        if len(batch.entries) != len(batch.inverse) or distinct != {len(batch.slots)}:
            raise ValueError("a saved batch has arrays of different lengths")
        return batch

    def flips(self, entries: Array) -> Array:
        """The flips of entries."""
        if not self._coins:
            flips: Array = self._flips[entries]
            return flips
        bits = np.unpackbits(self._flips[entries], axis=1, count=self._d)
        return bits.astype(np.float32) * 2 - 1

    def update_priorities(self, batch: CoinBatch, novelty: Array) -> None:
        """Eq. 6: alpha / (n_updates + 1) + (1 - alpha) |f(s)|^2 / d; `novelty` has |f|^2 / d of each distinct frame.

        An entry that was overwritten since the batch was sampled is left alone.
        """
        still = kept(batch.entries, batch.drawn, self._added, self._capacity)
        entries, inverse = batch.entries[still], batch.inverse[still]
        np.add.at(self._updates, entries, 1)
        if self._prioritize:
            tried = self._alpha / (self._updates[entries] + 1.0)
            self._tree[entries] = tried + (1 - self._alpha) * novelty[inverse]

    def state_dict(self) -> dict[str, Any]:
        """Entries, updates and priorities; and the frames, if its own."""
        size = len(self)
        return {
            "slots": self._slots[:size],
            "flips": self._flips[:size],
            "updates": self._updates[:size],
            "added": self._added,
            **self._tree.state_dict(size),
            **({"frames": self.frames.state_dict()} if self._owns_frames else {}),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over all of it."""
        size = len(state["slots"])
        if size != min(state["added"], self._capacity):
            raise ValueError(f"the buffer holds {size:,} of {state['added']:,} states")
        self._slots[:size], self._flips[:size], self._updates[:size] = state["slots"], state["flips"], state["updates"]
        self._added = state["added"]
        self._tree.load_state_dict(state)
        if self._owns_frames:
            self.frames.load_state_dict(state["frames"])
