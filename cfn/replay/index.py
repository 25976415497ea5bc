"""Which slot a frame is in, by its content: a hash table of 24 to 32 bytes a frame instead of a dictionary's 200."""

import hashlib

import numba
import numpy as np

from cfn.replay.growing import grow
from cfn.types import Array

EMPTY = -1


@numba.njit(cache=True)
def _find(table: Array, digests: Array, low: int, high: int) -> int:
    mask = len(table) - 1
    place = low & mask
    while table[place] != EMPTY:
        slot = table[place]
        if digests[slot, 0] == low and digests[slot, 1] == high:
            return int(slot)
        place = (place + 1) & mask
    return EMPTY


@numba.njit(cache=True)
def _insert(table: Array, digests: Array, slot: int) -> None:
    mask = len(table) - 1
    place = digests[slot, 0] & mask
    while table[place] != EMPTY:
        place = (place + 1) & mask
    table[place] = slot


@numba.njit(cache=True)
def _insert_all(table: Array, digests: Array, slots: Array) -> None:
    for slot in slots:
        _insert(table, digests, slot)


@numba.njit(cache=True)
def _remove(table: Array, digests: Array, slot: int) -> None:
    """Empty the slot's place, and move up whatever was only further on because the place was taken."""
    mask = len(table) - 1
    place = digests[slot, 0] & mask
    while table[place] != slot:
        place = (place + 1) & mask
    table[place] = EMPTY
    following = (place + 1) & mask
    while table[following] != EMPTY:
        home = digests[table[following], 0] & mask
        if ((following - home) & mask) >= ((following - place) & mask):
            table[place] = table[following]
            table[following] = EMPTY
            place = following
        following = (following + 1) & mask


class ContentIndex:
    """Slots by content. Two frames with one digest of 128 bits are one: by chance that never happens."""

    BYTES = 32
    """Of one frame: its digest, and its share of a table that is a quarter to half full."""

    def __init__(self) -> None:
        self._digests = np.zeros((256, 2), np.int64)  # by slot
        self._table = np.full(1024, EMPTY, np.int32)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @staticmethod
    def digest(frame: Array) -> tuple[int, int]:
        """What a frame is known by."""
        content = hashlib.blake2b(np.ascontiguousarray(frame).data, digest_size=16).digest()
        return int.from_bytes(content[:8], "little", signed=True), int.from_bytes(content[8:], "little", signed=True)

    def find(self, digest: tuple[int, int]) -> int | None:
        """The slot of a frame, if it is there."""
        slot = int(_find(self._table, self._digests, *digest))
        return None if slot == EMPTY else slot

    def add(self, slot: int, digest: tuple[int, int]) -> None:
        """A frame is now in this slot."""
        if slot >= len(self._digests):
            grow(self, "_digests", max(2 * len(self._digests), slot + 1))
        self._digests[slot] = digest
        self._used += 1
        if 2 * self._used > len(self._table):
            slots = self._table[self._table != EMPTY]
            self._table = np.full(2 * len(self._table), EMPTY, np.int32)
            _insert_all(self._table, self._digests, slots)
        _insert(self._table, self._digests, slot)

    def remove(self, slot: int) -> None:
        """The frame in this slot is gone."""
        _remove(self._table, self._digests, slot)
        self._used -= 1

    def state_dict(self, slots: int) -> dict[str, Array]:
        """What the frames of the first `slots` slots are known by."""
        return {"digests": self._digests[:slots]}

    def load_state_dict(self, state: dict[str, Array], held: Array) -> None:
        """Take over what frames are known by; those in the slots `held` are there, the others are gone."""
        if state["digests"].dtype != np.int64 or state["digests"].shape[1:] != (2,):
            raise ValueError("what frames are known by is two whole numbers each")
        self._digests, self._used = state["digests"].copy(), len(held)
        self._table = np.full(max(1024, 1 << (2 * len(held)).bit_length()), EMPTY, np.int32)
        _insert_all(self._table, self._digests, held)
