"""Checks of positions in ring buffers, in which addition number k goes to position k % capacity."""

from typing import Any

import numpy as np

from cfn.types import Array


def kept(entries: Array, drawn: int, added: int, capacity: int) -> Array:
    """Return a mask of the entries that were not overwritten since they were sampled.

    Args:
        entries: Positions in the ring.
        drawn: Number of additions before the entries were sampled.
        added: Number of additions until now.
        capacity: Capacity of the ring.
    """
    still: Array = (entries - drawn) % capacity >= added - drawn
    return still


def require_like(saved: tuple[Any, ...], sampled: tuple[Any, ...]) -> None:
    """Raise `ValueError` unless the fields of a saved batch have the types and shapes of a newly sampled batch."""
    for found, expected in zip(saved, sampled, strict=True):
        if type(found) is not type(expected):
            raise ValueError(f"a saved batch has a {type(found).__name__} instead of a {type(expected).__name__}")
        if isinstance(expected, np.ndarray) and (found.dtype, found.shape[1:]) != (expected.dtype, expected.shape[1:]):
            kinds = (f"{array.dtype} {array.shape[1:]}" for array in (found, expected))
            raise ValueError(f"a saved batch has entries of {' instead of '.join(kinds)}")


def require_drawn(entries: Array, drawn: int, added: int, size: int) -> None:
    """Raise `ValueError` unless the entries can be a sample from a ring with `size` entries after `added` additions."""
    if not (((entries >= 0) & (entries < size)).all() and 0 < drawn <= added):
        raise ValueError("a saved batch was not sampled from this buffer")
