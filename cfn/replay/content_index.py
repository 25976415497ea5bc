"""Hash table from the content of frames to their slots: 24 to 32 bytes per frame, where a dictionary needs 200."""

import hashlib

import numba
import numpy as np

from cfn.replay.growing_arrays import grow
from cfn.types import Array

EMPTY = -1
"""Table entry without a slot."""

Digest = tuple[int, int]
"""Content hash of 128 bits, as two signed integers."""


def content_digest(content: bytes) -> Digest:
    """Return the content hash of a frame's bytes."""
    hashed = hashlib.blake2b(content, digest_size=16).digest()
    return int.from_bytes(hashed[:8], "little", signed=True), int.from_bytes(hashed[8:], "little", signed=True)


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
    """Empty the slot's place, and move back the following entries that linear probing had displaced."""
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
    """Slots by content hash. Frames with equal hashes of 128 bits are taken as equal."""

    BYTES = 32
    """Bytes per frame: its hash, and its share of a table that is a quarter to half full."""

    def __init__(self) -> None:
        self._digests = np.zeros((256, 2), np.int64)  # by slot
        self._table = np.full(1024, EMPTY, np.int32)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def find(self, digest: Digest) -> int | None:
        """Return the slot with this content hash; None if there is none."""
        slot = int(_find(self._table, self._digests, *digest))
        return None if slot == EMPTY else slot

    def add(self, slot: int, digest: Digest) -> None:
        """Add a slot with this content hash."""
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
        """Remove a slot."""
        _remove(self._table, self._digests, slot)
        self._used -= 1

    def state_dict(self, slots: int) -> dict[str, Array]:
        """Return the content hashes of the first `slots` slots, including free ones."""
        return {"digests": self._digests[:slots]}

    def load_state_dict(self, state: dict[str, Array], held: Array) -> None:
        """Restore the content hashes; only the slots `held` are in use."""
        if state["digests"].dtype != np.int64 or state["digests"].shape[1:] != (2,):
            raise ValueError("content hashes of frames are not pairs of 64-bit integers")
        self._digests, self._used = state["digests"].copy(), len(held)
        self._table = np.full(max(1024, 1 << (2 * len(held)).bit_length()), EMPTY, np.int32)
        _insert_all(self._table, self._digests, held)
