"""Each distinct frame once: content-addressed, reference-counted, shared by whoever holds its slot."""

import hashlib
import math
from typing import Any

import numpy as np

from cfn.types import Array

OVERHEAD = 160
"""Bytes beside each frame: its digest, its place in the dictionary, its references."""

GROWTH = 2**26
"""Bytes by which a store grows at the most, so that little is reserved that may never be needed."""


class FrameStore:
    """Observations by slot. Putting in one that is there already only counts a reference.

    Args:
        shape: Of one frame.
        dtype: Of its numbers.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._slots: dict[bytes, int] = {}  # by content
        self._contents: list[bytes] = []  # by slot, to forget a frame that nobody holds
        self._free: list[int] = []
        self._references = np.zeros(0, np.int64)
        self._frames = np.zeros((0, *shape), dtype)
        self.features = np.zeros((0, 0), np.float32)

    @staticmethod
    def bytes_of(shape: tuple[int, ...], dtype: Any) -> int:
        """What one frame takes, with what is kept to find and to count it."""
        return math.prod(shape) * int(np.dtype(dtype).itemsize) + OVERHEAD

    def __len__(self) -> int:
        """How many distinct frames there are."""
        return len(self._slots)

    def keep_features(self, columns: int) -> None:
        """Make room for this many numbers beside each frame (a frozen network's output, say): NaN until written."""
        self.features = np.full((len(self._frames), columns), np.nan, np.float32)

    def put(self, frame: Array) -> int:
        """Hold a frame. Returns its slot."""
        content = _content(frame)
        slot = self._slots.get(content)
        if slot is not None:
            self._references[slot] += 1
            return slot
        slot = self._free.pop() if self._free else self._next()
        self._slots[content] = slot
        self._contents[slot] = content
        self._frames[slot] = frame
        self._references[slot] = 1
        self.features[slot] = np.nan
        return slot

    def find(self, frame: Array) -> int | None:
        """The slot of a frame, if it is there."""
        return self._slots.get(_content(frame))

    def hold(self, slots: Array) -> None:
        """Hold frames that somebody else holds already."""
        np.add.at(self._references, slots, 1)

    def release(self, slots: Array) -> None:
        """Let go of frames; one that nobody holds any more makes room for another."""
        np.subtract.at(self._references, slots, 1)
        for slot in np.unique(slots[self._references[slots] == 0]).tolist():
            del self._slots[self._contents[slot]]
            self._free.append(slot)

    def __getitem__(self, slots: Array) -> Array:
        frames: Array = self._frames[slots]
        return frames

    def state_dict(self) -> dict[str, Array]:
        """Frames, references and features, by slot."""
        used = len(self._contents)
        return {
            "frames": self._frames[:used].copy(),
            "references": self._references[:used].copy(),
            "features": self.features[:used].copy(),
            "free": np.array(self._free, np.int64),
        }

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Take over frames, references and features."""
        self._frames, self._references = state["frames"].copy(), state["references"].copy()
        self.features, self._free = state["features"].copy(), state["free"].tolist()
        self._contents = [_content(frame) for frame in self._frames]
        held = np.flatnonzero(self._references)
        self._slots = {self._contents[slot]: int(slot) for slot in held}

    def _next(self) -> int:
        slot = len(self._contents)
        self._contents.append(b"")
        if slot == len(self._frames):
            grown = slot + min(max(256, slot), max(256, GROWTH // max(self._frames[:1].nbytes, 1)))
            for array in (self._references, self._frames, self.features):  # in place: never two copies of the frames
                array.resize((grown, *array.shape[1:]), refcheck=False)
        return slot


def _content(frame: Array) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(frame).data, digest_size=16).digest()
