"""Arrays that grow, in place where that is safe: a buffer of gigabytes should never be there twice."""

import numpy as np


def grow(owner: object, name: str, length: int) -> None:
    """Lengthen the array that is the attribute `name` of `owner`; what is new is zero.

    It is moved only if somebody else holds a view of it, as one who keeps a state_dict does: the view goes on showing
    the array as it was.
    """
    shape = (length, *getattr(owner, name).shape[1:])
    try:
        getattr(owner, name).resize(shape)
    except ValueError:  # it is referenced by another
        before = getattr(owner, name)
        after = np.zeros(shape, before.dtype)
        after[: len(before)] = before
        setattr(owner, name, after)
