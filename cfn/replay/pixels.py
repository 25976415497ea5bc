"""Where the numbers of frames are: as they are while they are few, compressed without loss when they outgrow memory."""

import logging
from typing import Any

import numpy as np
import zstandard

from cfn.replay.growing import grow
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
MOVED = 1024
"""Frames of a segment that are decompressed at once when it is written anew."""
DESCRIPTOR, SIZED = 4, 0b1110_0000
"""Which byte of a compressed frame says what its header has, and the bits of it that stand for a size."""
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
            grow(self, "_frames", grown)
        self._frames[slot] = frame

    def __getitem__(self, slots: Array) -> Array:
        frames: Array = self._frames[slots]
        return frames

    def __delitem__(self, slot: int) -> None:
        """Nothing to do: the slot is written over when it is needed."""

    def state_dict(self, slots: int) -> dict[str, Any]:
        """The first `slots` frames."""
        return {"frames": self._frames[:slots]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the frames."""
        self._frames = state["frames"].copy()


class Sealed:
    """Bytes that will never change: whoever has written them once need not look at them again.

    Args:
        data: The bytes.
    """

    def __init__(self, data: Array) -> None:
        self.data = data


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
        self._sealed: dict[int, Sealed] = {}  # segments to which nothing will be added
        self._live: list[int] = []  # bytes that are in use, by segment
        self._codecs: list[Codec] = []  # by segment
        self._codec = Codec(None)
        self._used, self._open = 0, False  # of the last segment, which is written to while it is open: none yet
        self._written, self._fresh, self._recent = 0, 0.0, 0.0  # since the dictionary; sizes just after it, and lately

    def __setitem__(self, slot: int, frame: Array) -> None:
        if slot >= len(self._segment):
            grown = max(2 * len(self._segment), slot + 1, 256) if slot < 2**20 else slot + 2**20
            before = len(self._segment)
            for name in ("_segment", "_start", "_length"):
                grow(self, name, grown)
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
            self._drop(segment)
        elif self._live[segment] < SEGMENT // 2:
            self._move(np.flatnonzero(self._segment == segment), segment)

    def train(self, frames: Array) -> None:
        """Make a dictionary of these frames; if they are too few for one, go on with what there is."""
        try:
            trained = zstandard.train_dictionary(DICTIONARY, [frame.tobytes() for frame in frames])
            self._codec = Codec(np.frombuffer(trained.as_bytes(), np.uint8))
            self._open = False  # what comes next is in a segment of its own
        except zstandard.ZstdError as error:
            reason = f"{len(frames):,} of them are too few ({error})"
            log.info(f"Frames are compressed without a new dictionary, for which {reason}.")
        self._written, self._fresh, self._recent = 0, 0.0, 0.0

    def sample(self, slots: Array) -> Array:
        """Those of them that a dictionary is trained on."""
        chosen: Array = self._rng.choice(slots, min(SAMPLES, len(slots)), replace=False)
        return chosen

    def _place(self, slot: int, data: bytes) -> None:
        if not self._open or self._used + len(data) > SEGMENT:
            self._seal()
            self._segments.append(np.empty(SEGMENT, np.uint8))
            self._live.append(0)
            self._codecs.append(self._codec)
            self._used, self._open = 0, True
        segment = self._segments[-1]
        assert segment is not None, "it is being written"
        segment[self._used : self._used + len(data)] = np.frombuffer(data, np.uint8)
        self._segment[slot], self._start[slot], self._length[slot] = len(self._segments) - 1, self._used, len(data)
        self._used += len(data)
        self._live[-1] += len(data)

    def _seal(self) -> None:
        if self._segments and (last := self._segments[-1]) is not None:
            self._sealed[len(self._segments) - 1] = Sealed(last[: self._used])

    def _drop(self, segment: int) -> None:
        self._segments[segment], self._live[segment] = None, 0
        self._codecs[segment] = self._codec  # nobody asks for it, and its own dictionary can go
        self._sealed.pop(segment, None)

    def _move(self, slots: Array, segment: int) -> None:
        """Write what is left of a segment anew, with the newest dictionary."""
        for start in range(0, len(slots), MOVED):
            block = slots[start : start + MOVED]
            for slot, frame in zip(block.tolist(), self[block], strict=True):
                self._place(slot, self._codec.pack(frame.tobytes()))
        self._drop(segment)

    def _judge(self, size: int) -> None:
        """Train a new dictionary when frames are no longer like those that the last was trained on."""
        self._written += 1
        weight = max(1 / self._written, 1e-3)
        self._recent += weight * (size - self._recent)
        if self._written == RENEW_AFTER // 20:
            self._fresh = self._recent
        if self._written >= RENEW_AFTER and self._recent > RENEW_WHEN * self._fresh:
            self.train(self[self.sample(np.flatnonzero(self._segment >= 0))])

    def state_dict(self, slots: int) -> dict[str, Any]:
        """Segments as they are, dictionaries, and where each of the first `slots` frames is."""
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
            "counters": [self._used, self._open, self._written, self._fresh, self._recent],
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over all of it."""
        codecs = [Codec(dictionary) for dictionary in state["dictionaries"]]
        *self._codecs, self._codec = (codecs[i] for i in state["codecs"])
        self._segment, self._start, self._length = (array.copy() for array in state["where"])
        self._used, self._open, self._written, self._fresh, self._recent = state["counters"]
        self._live = list(state["live"])
        self._rng.bit_generator.state = state["rng"]
        *sealed, last = state["segments"] or [None]
        self._sealed = {i: s if isinstance(s, Sealed) else Sealed(s) for i, s in enumerate(sealed) if s is not None}
        self._segments = [self._sealed[i].data if i in self._sealed else None for i in range(len(sealed))]
        if last is not None:  # the others are never written to; this one may be
            segment = np.empty(SEGMENT, np.uint8)
            segment[: self._used] = last
            self._segments.append(segment)
        self._refuse_sizes()

    def _refuse_sizes(self) -> None:
        """Refuse frames that say themselves how large they are, as ours never do: they would get all that they claim.

        The byte that tells is looked at here, once, for all frames of a segment together.
        """
        order = np.argsort(self._segment, kind="stable")
        order = order[self._segment[order] >= 0]
        numbers, firsts = np.unique(self._segment[order], return_index=True)
        for number, slots in zip(numbers.tolist(), np.split(order, firsts[1:]), strict=False):  # no numbers: one split
            segment = self._segments[number]
            starts, lengths = (array[slots].astype(np.int64) for array in (self._start, self._length))
            if segment is None or (segment.dtype, segment.ndim) != (np.uint8, 1):
                raise ValueError("a segment of compressed frames is not of bytes")
            if (starts < 0).any() or (lengths <= DESCRIPTOR).any() or (starts + lengths > len(segment)).any():
                raise ValueError("a compressed frame lies outside of its segment")
            if (segment[starts + DESCRIPTOR] & SIZED).any():
                raise ValueError("a compressed frame is not one of ours")


class Codec:
    """Compresses and decompresses with one dictionary, or with none.

    Args:
        dictionary: What frames have in common.
    """

    def __init__(self, dictionary: Array | None) -> None:
        self.dictionary = dictionary
        trained = None
        if dictionary is not None:
            trained = zstandard.ZstdCompressionDict(dictionary.tobytes())
            trained.precompute_compress(level=LEVEL)
        self.pack = zstandard.ZstdCompressor(  # the bytes alone: what they are is known here
            LEVEL, dict_data=trained, write_content_size=False, write_checksum=False, write_dict_id=False
        ).compress
        self.unpack = zstandard.ZstdDecompressor(dict_data=trained).decompress
