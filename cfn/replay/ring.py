"""Rings, in which entry i is the i-th that was added, and the i + capacity-th after it: the oldest makes room."""

from typing import Any

import numpy as np

from cfn.types import Array


def kept(entries: Array, drawn: int, added: int, capacity: int) -> Array:
    """Which entries still hold what they held when they were drawn.

    Args:
        entries: Places in the ring.
        drawn: How many had been added when they were drawn.
        added: How many have been added by now.
        capacity: Of the ring.
    """
    still: Array = (entries - drawn) % capacity >= added - drawn
    return still


def require_like(saved: tuple[Any, ...], drawn: tuple[Any, ...]) -> None:
    """Refuse the fields of a saved batch if they are not of the kinds that one just drawn has."""
    for theirs, ours in zip(saved, drawn, strict=True):
        if type(theirs) is not type(ours):
            raise ValueError(f"a saved batch has a {type(theirs).__name__} for a {type(ours).__name__}")
        if isinstance(ours, np.ndarray) and (theirs.dtype, theirs.shape[1:]) != (ours.dtype, ours.shape[1:]):
            was = f"{theirs.dtype} {theirs.shape[1:]}"
            raise ValueError(f"a saved batch has entries of {was} for {ours.dtype} {ours.shape[1:]}")


def require_drawn(entries: Array, drawn: int, added: int, size: int) -> None:
    """Refuse entries that cannot have been drawn from a ring that holds `size` of the `added` so far."""
    if not (((entries >= 0) & (entries < size)).all() and 0 < drawn <= added):
        raise ValueError("a saved batch was not drawn from this buffer")
