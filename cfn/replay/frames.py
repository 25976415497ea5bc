"""Each distinct frame once: content-addressed, reference-counted, shared by whoever holds its slot."""

import math
from typing import Any

import numpy as np

from cfn.replay.growing import grow
from cfn.replay.index import ContentIndex
from cfn.replay.pixels import PackedPixels, RawPixels
from cfn.types import Array

RAW_BYTES = 2**26
"""Images are kept as they are up to so many bytes, and compressed beyond."""
PACKED_BYTES, PACKED_PIXELS = 450, 84 * 84
"""What a compressed frame of so many pixels takes, roughly: Montezuma's Revenge has 200 to 450 bytes."""
OVERHEAD = ContentIndex.BYTES + 8 + 12
"""Bytes beside each frame: what it is found by, its references, and where its compressed bytes are."""


class FrameStore:
    """Observations by slot. Putting in one that is there already only counts a reference.

    Args:
        shape: Of one frame.
        dtype: Of its numbers.
        raw_bytes: Images are compressed once they take more than this.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, raw_bytes: int = RAW_BYTES) -> None:
        self._shape, self._dtype = shape, np.dtype(dtype)
        self._index = ContentIndex()
        self._free: list[int] = []
        self._slots = 0  # how many there are, free ones among them
        self._references = np.zeros(0, np.int32)
        self._pixels: RawPixels | PackedPixels = RawPixels(shape, dtype)
        self._packs, self._raw_slots = packable(shape, dtype), raw_bytes // max(self.bytes_of_pixels(shape, dtype), 1)
        self.features = np.zeros((0, 0), np.float32)

    @staticmethod
    def bytes_of_pixels(shape: tuple[int, ...], dtype: Any) -> int:
        """What a frame's numbers take as they are."""
        return math.prod(shape) * int(np.dtype(dtype).itemsize)

    @staticmethod
    def bytes_of(shape: tuple[int, ...], dtype: Any) -> int:
        """What one frame of many takes, with what is kept to find and to count it."""
        raw = FrameStore.bytes_of_pixels(shape, dtype)
        packed = max(PACKED_BYTES, raw * PACKED_BYTES // PACKED_PIXELS)  # small ones compress less well
        return (min(raw, packed) if packable(shape, dtype) else raw) + OVERHEAD

    def __len__(self) -> int:
        """How many distinct frames there are."""
        return len(self._index)

    def keep_features(self, columns: int) -> None:
        """Make room for this many numbers beside each frame (a frozen network's output, say): NaN until written."""
        self.features = np.full((len(self._references), columns), np.nan, np.float32)

    def put(self, frame: Array) -> int:
        """Hold a frame. Returns its slot."""
        digest = ContentIndex.digest(frame)
        slot = self._index.find(digest)
        if slot is not None:
            self._references[slot] += 1
            return slot
        slot = self._free.pop() if self._free else self._next()
        self._index.add(slot, digest)
        self._pixels[slot] = frame
        self._references[slot] = 1
        self.features[slot] = np.nan
        return slot

    def find(self, frame: Array) -> int | None:
        """The slot of a frame, if it is there."""
        return self._index.find(ContentIndex.digest(frame))

    def hold(self, slots: Array) -> None:
        """Hold frames that somebody else holds already."""
        np.add.at(self._references, slots, 1)

    def release(self, slots: Array) -> None:
        """Let go of frames; one that nobody holds any more makes room for another."""
        np.subtract.at(self._references, slots, 1)
        for slot in np.unique(slots[self._references[slots] == 0]).tolist():
            self._index.remove(slot)
            del self._pixels[slot]
            self._free.append(slot)

    def __getitem__(self, slots: Array) -> Array:
        return self._pixels[slots]

    def state_dict(self) -> dict[str, Any]:
        """Frames, compressed if they are, and by slot what they are found by, references and features."""
        return {
            "packed": isinstance(self._pixels, PackedPixels),
            "pixels": self._pixels.state_dict(self._slots),
            "index": self._index.state_dict(self._slots),
            "references": self._references[: self._slots],
            "features": self.features[: self._slots],
            "free": np.array(self._free, np.int64),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over all of it."""
        if not len(state["references"]) == len(state["features"]) == len(state["index"]["digests"]):
            raise ValueError("the frame store's arrays differ in length")
        if not np.array_equal(np.flatnonzero(state["references"] <= 0), np.sort(state["free"])):
            raise ValueError("the frame store's free slots are not those that nobody holds")
        self._references, self.features = state["references"].copy(), state["features"].copy()
        self._slots, self._free = len(self._references), state["free"].tolist()
        self._pixels = PackedPixels(self._shape) if state["packed"] else RawPixels(self._shape, self._dtype)
        self._pixels.load_state_dict(state["pixels"])
        self._index.load_state_dict(state["index"], np.flatnonzero(self._references > 0))

    def _next(self) -> int:
        slot = self._slots
        if self._packs and slot == self._raw_slots:
            held = np.flatnonzero(self._references)
            self._pixels = self._packed(held, self._pixels[held])  # from here on
        self._slots += 1
        if slot == len(self._references):
            grown = slot + min(max(256, slot), 2**20)
            for name in ("_references", "features"):
                grow(self, name, grown)
        return slot

    def _packed(self, slots: Array, frames: Array) -> PackedPixels:
        """These frames in these slots, compressed."""
        pixels = PackedPixels(self._shape)
        pixels.train(frames[pixels.sample(np.arange(len(frames)))])
        for slot, frame in zip(slots.tolist(), frames, strict=True):
            pixels[slot] = frame
        return pixels


def shared_or_own(frames: FrameStore | None, shape: tuple[int, ...], dtype: Any) -> tuple[FrameStore, bool]:
    """The store that others keep their frames in too, or else one of a buffer's own; and whether it is the latter."""
    return (FrameStore(shape, dtype), True) if frames is None else (frames, False)  # an empty store is false


def packable(shape: tuple[int, ...], dtype: Any) -> bool:
    """Whether frames are images, which compress well."""
    return len(shape) == 2 and np.dtype(dtype) == np.uint8
