"""Storage of the pixels of frames by slot: uncompressed for small stores, losslessly compressed for large ones."""

import logging
from typing import Any

import numpy as np
import zstandard

from cfn.checkpoints.stateful import Sealed
from cfn.replay.growing_arrays import grow
from cfn.types import Array

log = logging.getLogger(__name__)

GROWTH = 2**26
"""Maximum bytes by which an array of frames grows at once, to reserve little that is never used."""
SEGMENT = 2**24
"""Bytes per segment of compressed frames."""
LEVEL = 3
"""Compression level of zstandard: higher levels save a sixth of the bytes and take three times as long."""
DICTIONARY = 2**17
"""Maximum bytes of a compression dictionary, which has the common parts of frames, such as the rooms of a game."""
SAMPLES = 2000
"""Maximum number of frames that a dictionary is trained on."""
MOVE_BLOCK = 1024
"""Number of frames that are decompressed at once when a segment is rewritten."""
DESCRIPTOR, SIZE_BITS = 4, 0b1110_0000
"""Offset of the descriptor byte in a zstandard frame, and its bits that are set if the frame declares its size."""
RENEW_AFTER, RENEW_RATIO = 20_000, 1.3
"""Conditions for training a new dictionary: frames since the last one, and growth of the mean compressed size."""


class RawPixels:
    """Uncompressed frames.

    Args:
        shape: Shape of a frame.
        dtype: Type of its elements.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._frames = np.zeros((0, *shape), dtype)

    def __setitem__(self, slot: int, frame: Array) -> None:
        if slot >= len(self._frames):
            size = len(self._frames)
            grown = max(slot + 1, size + min(max(256, size), max(256, GROWTH // max(self._frames[:1].nbytes, 1))))
            grow(self, "_frames", grown)
        self._frames[slot] = frame

    def __getitem__(self, slots: Array) -> Array:
        frames: Array = self._frames[slots]
        return frames

    def __delitem__(self, slot: int) -> None:
        """Do nothing: a free slot is overwritten when it is used again."""

    def state_dict(self, slots: int) -> dict[str, Any]:
        """Return the frames of the first `slots` slots."""
        return {"frames": self._frames[:slots]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._frames = state["frames"].copy()


class PackedPixels:
    """Images, each compressed by zstandard with a dictionary of their common parts.

    Compressed frames are appended to segments. A segment with less than half in use is rewritten, and an empty one is
    dropped. All frames of a segment use the same dictionary, so a new dictionary begins a new segment.

    Args:
        shape: Shape of an image.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape, self._size = shape, int(np.prod(shape))
        self._rng = np.random.default_rng(0)  # draws training samples for dictionaries
        self._segment, self._start, self._length = (np.zeros(0, np.int32) for _ in range(3))  # by slot; -1: free
        self._segments: list[Array | None] = []
        self._sealed: dict[int, Sealed] = {}  # segments that are never written again, by number
        self._live: list[int] = []  # bytes in use, by segment
        self._codecs: list[Codec] = []  # by segment
        self._codec = Codec(None)
        self._used, self._open = 0, False  # of the last segment: bytes written, and whether frames are appended to it
        self._reset_sizes()

    def __setitem__(self, slot: int, frame: Array) -> None:
        if slot >= len(self._segment):
            grown = max(2 * len(self._segment), slot + 1, 256) if slot < 2**20 else slot + 2**20
            before = len(self._segment)
            for name in ("_segment", "_start", "_length"):
                grow(self, name, grown)
            self._segment[before:] = -1
        data = self._codec.pack(frame.tobytes())
        self._append(slot, data)
        self._watch_size(len(data))

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
            return  # frames are still appended to it
        if self._live[segment] == 0:
            self._drop(segment)
        elif self._live[segment] < SEGMENT // 2:
            self._move(np.flatnonzero(self._segment == segment), segment)

    def train(self, frames: Array) -> None:
        """Train a new dictionary on these frames; if they are too few, keep the current one."""
        try:
            trained = zstandard.train_dictionary(DICTIONARY, [frame.tobytes() for frame in frames])
            self._codec = Codec(np.frombuffer(trained.as_bytes(), np.uint8))
            self._open = False  # the new dictionary needs a new segment
        except zstandard.ZstdError as error:
            log.info(f"{len(frames):,} frames are too few to train a compression dictionary ({error}).")
        self._reset_sizes()

    def sample(self, slots: Array) -> Array:
        """Return a random sample of slots to train a dictionary on."""
        chosen: Array = self._rng.choice(slots, min(SAMPLES, len(slots)), replace=False)
        return chosen

    def _append(self, slot: int, data: bytes) -> None:
        """Write the compressed frame of a slot to the last segment, or to a new one."""
        if not self._open or self._used + len(data) > SEGMENT:
            self._seal()
            self._segments.append(np.empty(SEGMENT, np.uint8))
            self._live.append(0)
            self._codecs.append(self._codec)
            self._used, self._open = 0, True
        segment = self._segments[-1]
        assert segment is not None, "only earlier segments are dropped"
        segment[self._used : self._used + len(data)] = np.frombuffer(data, np.uint8)
        self._segment[slot], self._start[slot], self._length[slot] = len(self._segments) - 1, self._used, len(data)
        self._used += len(data)
        self._live[-1] += len(data)

    def _seal(self) -> None:
        if self._segments and (last := self._segments[-1]) is not None:
            self._sealed[len(self._segments) - 1] = Sealed(last[: self._used])

    def _drop(self, segment: int) -> None:
        self._segments[segment], self._live[segment] = None, 0
        self._codecs[segment] = self._codec  # unused from now on; its dictionary may be freed
        self._sealed.pop(segment, None)

    def _move(self, slots: Array, segment: int) -> None:
        """Rewrite the remaining frames of a segment with the newest dictionary, and drop the segment."""
        for start in range(0, len(slots), MOVE_BLOCK):
            block = slots[start : start + MOVE_BLOCK]
            for slot, frame in zip(block.tolist(), self[block], strict=True):
                self._append(slot, self._codec.pack(frame.tobytes()))
        self._drop(segment)

    def _reset_sizes(self) -> None:
        """Restart the statistics of compressed sizes, for a new dictionary."""
        self._written = 0  # frames since the last dictionary
        self._early_size, self._recent_size = 0.0, 0.0  # running mean of compressed bytes: soon after that, and now

    def _watch_size(self, size: int) -> None:
        """Train a new dictionary if frames have become unlike those that the last one was trained on."""
        self._written += 1
        weight = max(1 / self._written, 1e-3)
        self._recent_size += weight * (size - self._recent_size)
        if self._written == RENEW_AFTER // 20:
            self._early_size = self._recent_size
        if self._written >= RENEW_AFTER and self._recent_size > RENEW_RATIO * self._early_size:
            self.train(self[self.sample(np.flatnonzero(self._segment >= 0))])

    def state_dict(self, slots: int) -> dict[str, Any]:
        """Return the segments, their dictionaries, and the positions of the first `slots` slots in them."""
        codecs, last = list(dict.fromkeys([*self._codecs, self._codec])), len(self._segments) - 1
        return {
            "segments": [
                segment[: self._used] if i == last and segment is not None else self._sealed.get(i)
                for i, segment in enumerate(self._segments)
            ],
            "where": [self._segment[:slots], self._start[:slots], self._length[:slots]],
            "live": list(self._live),
            "dictionaries": [codec.dictionary for codec in codecs],
            "codecs": [codecs.index(codec) for codec in (*self._codecs, self._codec)],
            "counters": [self._used, self._open, self._written, self._early_size, self._recent_size],
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        codecs = [Codec(dictionary) for dictionary in state["dictionaries"]]
        *self._codecs, self._codec = (codecs[i] for i in state["codecs"])
        self._segment, self._start, self._length = (array.copy() for array in state["where"])
        self._used, self._open, self._written, self._early_size, self._recent_size = state["counters"]
        self._live = list(state["live"])
        self._rng.bit_generator.state = state["rng"]
        *sealed, last = state["segments"] or [None]
        self._sealed = {i: s if isinstance(s, Sealed) else Sealed(s) for i, s in enumerate(sealed) if s is not None}
        self._segments = [self._sealed[i].data if i in self._sealed else None for i in range(len(sealed))]
        if last is not None:  # frames may be appended to this one
            segment = np.empty(SEGMENT, np.uint8)
            segment[: self._used] = last
            self._segments.append(segment)
        self._check_frames()

    def _check_frames(self) -> None:
        """Raise `ValueError` for frames outside of their segments, and for frames that declare their own size.

        `Codec` never writes a size. Zstandard would allocate as much memory as a frame declares, however much that is.
        The check runs once, when a state is loaded, for all frames of a segment together.
        """
        order = np.argsort(self._segment, kind="stable")
        order = order[self._segment[order] >= 0]
        numbers, firsts = np.unique(self._segment[order], return_index=True)
        # Not strict: np.split of an empty store gives one empty part.
        for number, slots in zip(numbers.tolist(), np.split(order, firsts[1:]), strict=False):
            segment = self._segments[number]
            starts, lengths = (array[slots].astype(np.int64) for array in (self._start, self._length))
            if segment is None or (segment.dtype, segment.ndim) != (np.uint8, 1):
                raise ValueError("a segment of compressed frames is not a one-dimensional array of bytes")
            if (starts < 0).any() or (lengths <= DESCRIPTOR).any() or (starts + lengths > len(segment)).any():
                raise ValueError("a compressed frame lies outside of its segment")
            if (segment[starts + DESCRIPTOR] & SIZE_BITS).any():
                raise ValueError("a compressed frame declares its own size")


class Codec:
    """Compressor and decompressor with the same dictionary, or without one.

    Args:
        dictionary: Trained dictionary, as bytes; None to compress without one.
    """

    def __init__(self, dictionary: Array | None) -> None:
        self.dictionary = dictionary
        trained = None
        if dictionary is not None:
            trained = zstandard.ZstdCompressionDict(dictionary.tobytes())
            trained.precompute_compress(level=LEVEL)
        self.pack = zstandard.ZstdCompressor(  # without metadata, which is the same for all frames
            LEVEL, dict_data=trained, write_content_size=False, write_checksum=False, write_dict_id=False
        ).compress
        self.unpack = zstandard.ZstdDecompressor(dict_data=trained).decompress
