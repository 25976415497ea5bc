"""Frame store: each distinct frame is stored once, found by its content hash, and freed with its last reference.

Replay buffers hold slots (integers) instead of frames, so one store can serve the agent and the bonus.
"""

import math
from collections import deque
from typing import Any

import numpy as np

from cfn.replay.content_index import ContentIndex, Digest, content_digest
from cfn.replay.growing_arrays import grow
from cfn.replay.pixels import PackedPixels, RawPixels
from cfn.types import Array

RECENT = 16
"""Number of frames whose content hashes are remembered; with more environments each frame is hashed twice per step.

Comparing an 84x84 frame of Montezuma's Revenge with all of them takes an eighth of the time of hashing it.
"""
RAW_BYTES = 2**26
"""Maximum total bytes of uncompressed images; a larger store compresses all of its images."""
PACKED_BYTES, PACKED_PIXELS = 450, 84 * 84
"""Estimated bytes of a compressed frame of this many pixels: frames of Montezuma's Revenge take 200 to 450 bytes."""
OVERHEAD = ContentIndex.BYTES + 8 + 12
"""Bytes per frame beside its pixels: index entry, reference count, and position of the compressed bytes."""


class FrameStore:
    """Distinct frames by slot, with reference counts. Putting a frame that is already stored adds a reference.

    Args:
        shape: Shape of a frame.
        dtype: Type of its elements.
        raw_bytes: Maximum total bytes of uncompressed images.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, raw_bytes: int = RAW_BYTES) -> None:
        self._shape, self._dtype = shape, np.dtype(dtype)
        self._index = ContentIndex()
        self._recent: deque[tuple[bytes, Digest]] = deque(maxlen=RECENT)
        self._free: list[int] = []
        self._slots = 0  # number of slots, including free ones
        self._references = np.zeros(0, np.int32)
        self._pixels: RawPixels | PackedPixels = RawPixels(shape, dtype)
        self._packable = packable(shape, dtype)
        self._raw_slots = raw_bytes // max(self.bytes_of_pixels(shape, dtype), 1)  # beyond these, frames are compressed
        self.features = np.zeros((0, 0), np.float32)

    @staticmethod
    def bytes_of_pixels(shape: tuple[int, ...], dtype: Any) -> int:
        """Return the bytes of an uncompressed frame."""
        return math.prod(shape) * int(np.dtype(dtype).itemsize)

    @staticmethod
    def bytes_of(shape: tuple[int, ...], dtype: Any) -> int:
        """Return the estimated bytes per frame in a large store, including index and reference count."""
        raw = FrameStore.bytes_of_pixels(shape, dtype)
        packed = max(PACKED_BYTES, raw * PACKED_BYTES // PACKED_PIXELS)  # small frames compress less well
        return (min(raw, packed) if packable(shape, dtype) else raw) + OVERHEAD

    def __len__(self) -> int:
        """Number of distinct frames."""
        return len(self._index)

    def keep_features(self, columns: int) -> None:
        """Reserve this many features per frame, such as the outputs of a frozen network; NaN until they are set."""
        self.features = np.full((len(self._references), columns), np.nan, np.float32)

    def put(self, frame: Array) -> int:
        """Store a frame or add a reference to it, and return its slot."""
        digest = self._digest(frame)
        slot = self._index.find(digest)
        if slot is not None:
            self._references[slot] += 1
            return slot
        slot = self._free.pop() if self._free else self._new_slot()
        self._index.add(slot, digest)
        self._pixels[slot] = frame
        self._references[slot] = 1
        self.features[slot] = np.nan
        return slot

    def find(self, frame: Array) -> int | None:
        """Return the slot of a frame; None if it is not stored."""
        return self._index.find(self._digest(frame))

    def _digest(self, frame: Array) -> Digest:
        """Return the content hash of a frame; the agent and the bonus put the same frame shortly after each other."""
        content = frame.tobytes()
        for known, digest in self._recent:
            if known == content:
                return digest
        digest = content_digest(content)
        self._recent.append((content, digest))
        return digest

    def hold(self, slots: Array) -> None:
        """Add a reference to each of these stored frames."""
        np.add.at(self._references, slots, 1)

    def release(self, slots: Array) -> None:
        """Drop a reference to each of these frames, and free the slots without references."""
        np.subtract.at(self._references, slots, 1)
        for slot in np.unique(slots[self._references[slots] == 0]).tolist():
            self._index.remove(slot)
            del self._pixels[slot]
            self._free.append(slot)

    def __getitem__(self, slots: Array) -> Array:
        return self._pixels[slots]

    def state_dict(self) -> dict[str, Any]:
        return {
            "packed": isinstance(self._pixels, PackedPixels),
            "pixels": self._pixels.state_dict(self._slots),
            "index": self._index.state_dict(self._slots),
            "references": self._references[: self._slots],
            "features": self.features[: self._slots],
            "free": np.array(self._free, np.int64),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not len(state["references"]) == len(state["features"]) == len(state["index"]["digests"]):
            raise ValueError("the frame store's arrays differ in length")
        if not np.array_equal(np.flatnonzero(state["references"] <= 0), np.sort(state["free"])):
            raise ValueError("the frame store's free slots do not match its reference counts")
        self._references, self.features = state["references"].copy(), state["features"].copy()
        self._slots, self._free = len(self._references), state["free"].tolist()
        self._pixels = PackedPixels(self._shape) if state["packed"] else RawPixels(self._shape, self._dtype)
        self._pixels.load_state_dict(state["pixels"])
        self._index.load_state_dict(state["index"], np.flatnonzero(self._references > 0))

    def _new_slot(self) -> int:
        slot = self._slots
        if self._packable and slot == self._raw_slots:
            held = np.flatnonzero(self._references)
            self._pixels = self._packed(held, self._pixels[held])
        self._slots += 1
        if slot == len(self._references):
            grown = slot + min(max(256, slot), 2**20)
            for name in ("_references", "features"):
                grow(self, name, grown)
        return slot

    def _packed(self, slots: Array, frames: Array) -> PackedPixels:
        """Compress frames into the same slots."""
        pixels = PackedPixels(self._shape)
        pixels.train(frames[pixels.sample(np.arange(len(frames)))])
        for slot, frame in zip(slots.tolist(), frames, strict=True):
            pixels[slot] = frame
        return pixels


def shared_or_own(frames: FrameStore | None, shape: tuple[int, ...], dtype: Any) -> tuple[FrameStore, bool]:
    """Return the shared frame store, or a new one if there is none; and whether it is new."""
    return (FrameStore(shape, dtype), True) if frames is None else (frames, False)  # an empty store is falsy


def packable(shape: tuple[int, ...], dtype: Any) -> bool:
    """Return whether frames are grey images, which compress well."""
    return len(shape) == 2 and np.dtype(dtype) == np.uint8
