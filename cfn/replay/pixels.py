"""Where the numbers of frames are: as they are while they are few, compressed without loss when they outgrow memory."""

import logging
from typing import Any

import numpy as np
import zstandard

from cfn.types import Array

log = logging.getLogger(__name__)

GROWTH = 2**26
"""Bytes by which an array of frames grows at the most, so that little is reserved that may never be needed."""
SEGMENT = 2**24
"""Bytes of compressed frames that are kept together."""
LEVEL = 3
"""Of zstandard: higher ones save a sixth of the bytes at three times the time."""
DICTIONARY = 2**17
"""Bytes of a dictionary: what frames have in common, such as the rooms of a game."""
SAMPLES = 2000
"""Frames that a dictionary is trained on."""
RENEW_AFTER, RENEW_WHEN = 20_000, 1.3
"""A dictionary is trained anew once frames, at least so many later, come out so much larger than just after it was."""


class RawPixels:
    """Frames as they are.

    Args:
        shape: Of one frame.
        dtype: Of its numbers.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._frames = np.zeros((0, *shape), dtype)

    def __setitem__(self, slot: int, frame: Array) -> None:
        if slot >= len(self._frames):
            size = len(self._frames)
            grown = max(slot + 1, size + min(max(256, size), max(256, GROWTH // max(self._frames[:1].nbytes, 1))))
            self._frames.resize((grown, *self._frames.shape[1:]), refcheck=False)  # in place: never two copies
        self._frames[slot] = frame

    def __getitem__(self, slots: Array) -> Array:
        frames: Array = self._frames[slots]
        return frames

    def __delitem__(self, slot: int) -> None:
        """Nothing to do: the slot is written over when it is needed."""


class PackedPixels:
    """Images, compressed one by one with a dictionary of what they have in common (zstandard).

    Compressed frames are written one after another into segments; a segment that is mostly holes is written anew, one
    that is empty is let go. Each segment has one dictionary, so a new dictionary begins a new segment.

    Args:
        shape: Of one image.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape, self._size = shape, int(np.prod(shape))
        self._rng = np.random.default_rng(0)  # chooses what dictionaries are trained on, which changes no frame
        self._segment, self._start, self._length = (np.zeros(0, np.int32) for _ in range(3))  # by slot
        self._segments: list[Array | None] = []
        self._live: list[int] = []  # bytes that are in use, by segment
        self._codecs: list[Codec] = []  # by segment
        self._codec = Codec(None)
        self._used = SEGMENT  # of the segment that is being written: none yet
        self._written, self._fresh, self._recent = 0, 0.0, 0.0  # since the dictionary; sizes just after it, and lately

    @property
    def nbytes(self) -> int:
        """Bytes of the segments."""
        return sum(segment.nbytes for segment in self._segments if segment is not None)

    def __setitem__(self, slot: int, frame: Array) -> None:
        if slot >= len(self._segment):
            grown = max(2 * len(self._segment), slot + 1, 256) if slot < 2**20 else slot + 2**20
            before = len(self._segment)
            for array in (self._segment, self._start, self._length):
                array.resize(grown, refcheck=False)
            self._segment[before:] = -1
        data = self._codec.pack(frame.tobytes())
        self._place(slot, data)
        self._judge(len(data))

    def __getitem__(self, slots: Array) -> Array:
        flat = np.asarray(slots).ravel()
        frames = np.empty((len(flat), self._size), np.uint8)
        where = zip(self._segment[flat].tolist(), self._start[flat].tolist(), self._length[flat].tolist(), strict=True)
        for i, (segment, start, length) in enumerate(where):
            data = self._segments[segment][start : start + length]
            frames[i] = np.frombuffer(self._codecs[segment].unpack(data, self._size), np.uint8)
        return frames.reshape(*np.shape(slots), *self._shape)

    def __delitem__(self, slot: int) -> None:
        segment = int(self._segment[slot])
        self._segment[slot] = -1
        self._live[segment] -= int(self._length[slot])
        if segment == len(self._segments) - 1:
            return  # it is still being written
        if self._live[segment] == 0:
            self._segments[segment] = None
        elif self._live[segment] < SEGMENT // 2:
            self._move(np.flatnonzero(self._segment == segment), segment)

    def train(self, frames: Array) -> None:
        """Make a dictionary of these frames; if they are too few for one, go on with what there is."""
        try:
            self._codec = Codec(zstandard.train_dictionary(DICTIONARY, [frame.tobytes() for frame in frames]))
            self._used = SEGMENT  # what comes next is in a segment of its own
        except zstandard.ZstdError as error:
            reason = f"{len(frames):,} of them are too few ({error})"
            log.info(f"Frames are compressed without a new dictionary, for which {reason}.")
        self._written, self._fresh, self._recent = 0, 0.0, 0.0

    def sample(self, slots: Array) -> Array:
        """Those of them that a dictionary is trained on."""
        chosen: Array = self._rng.choice(slots, min(SAMPLES, len(slots)), replace=False)
        return chosen

    def _place(self, slot: int, data: bytes) -> None:
        if self._used + len(data) > SEGMENT:
            self._segments.append(np.empty(SEGMENT, np.uint8))
            self._live.append(0)
            self._codecs.append(self._codec)
            self._used = 0
        segment = self._segments[-1]
        assert segment is not None, "it is being written"
        segment[self._used : self._used + len(data)] = np.frombuffer(data, np.uint8)
        self._segment[slot], self._start[slot], self._length[slot] = len(self._segments) - 1, self._used, len(data)
        self._used += len(data)
        self._live[-1] += len(data)

    def _move(self, slots: Array, segment: int) -> None:
        """Write what is left of a segment anew, with the newest dictionary."""
        for slot, frame in zip(slots.tolist(), self[slots], strict=True):
            self._place(slot, self._codec.pack(frame.tobytes()))
        self._segments[segment], self._live[segment] = None, 0

    def _judge(self, size: int) -> None:
        """Train a new dictionary when frames are no longer like those that the last was trained on."""
        self._written += 1
        weight = max(1 / self._written, 1e-3)
        self._recent += weight * (size - self._recent)
        if self._written == RENEW_AFTER // 20:
            self._fresh = self._recent
        if self._written >= RENEW_AFTER and self._recent > RENEW_WHEN * self._fresh:
            self.train(self[self.sample(np.flatnonzero(self._segment >= 0))])


class Codec:
    """Compresses and decompresses with one dictionary, or with none.

    Args:
        dictionary: What frames have in common.
    """

    def __init__(self, dictionary: zstandard.ZstdCompressionDict | None) -> None:
        if dictionary is not None:
            dictionary.precompute_compress(level=LEVEL)
        self.pack = zstandard.ZstdCompressor(  # the bytes alone: what they are is known here
            LEVEL, dict_data=dictionary, write_content_size=False, write_checksum=False, write_dict_id=False
        ).compress
        self.unpack = zstandard.ZstdDecompressor(dict_data=dictionary).decompress
