"""Growing of arrays, in place if possible: a buffer of gigabytes should not be in memory twice."""

import numpy as np


def grow(owner: object, name: str, length: int) -> None:
    """Lengthen the array in the attribute `name` of `owner`; new elements are zero.

    The array is copied only if views of it exist, for example in a `state_dict`. Such views keep the old contents.
    """
    shape = (length, *getattr(owner, name).shape[1:])
    try:
        getattr(owner, name).resize(shape)
    except ValueError:  # NumPy refuses to resize an array that has views
        before = getattr(owner, name)
        after = np.zeros(shape, before.dtype)
        after[: len(before)] = before
        setattr(owner, name, after)
