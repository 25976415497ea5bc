"""Check of the observations that a loop passes to a bonus: one that does not fit is refused, never misread."""

from typing import Any

import gymnasium as gym
import numpy as np

from cfn.errors import BadInputError
from cfn.nn import networks
from cfn.types import Array


class ObservationCheck:
    """Turns a batch of observations into an array of the bonus's observation space, or refuses it.

    The constructor raises `BadInputError` for spaces that are neither images nor vectors.

    Args:
        space: Observations of one environment.
    """

    def __init__(self, space: gym.Space[Any]) -> None:
        if networks.image_shape(space) is None and networks.vector_size(space) is None:
            raise networks.unsupported(space)
        self._shape, self._dtype = space.shape or (), np.dtype(space.dtype)

    def __call__(self, observations: Any) -> Array:
        """Return the batch as an array; raise `BadInputError` if its shape or numbers do not fit, or if it has NaN."""
        array = observations if isinstance(observations, np.ndarray) else _as_array(observations)
        if array.shape[1:] != self._shape or array.ndim == 0:
            raise BadInputError(self._shape_problem(array.shape))
        if array.dtype == self._dtype:
            return _finite(array)
        if self._dtype == np.uint8:
            if array.dtype.kind in "iu" and (not array.size or (array.min() >= 0 and array.max() <= 255)):
                return array.astype(np.uint8)  # a list of bytes becomes an array of larger integers
            raise BadInputError(
                f"observations have the type {array.dtype}, but the bonus was made for images of bytes (uint8, 0 to "
                "255): pass the images before they are scaled"
            )
        if array.dtype.kind not in "biuf":
            raise BadInputError(f"observations have the type {array.dtype}, but a bonus takes numbers")
        with np.errstate(over="ignore"):  # overflow gives infinity, which is refused
            return _finite(array.astype(self._dtype))

    def _shape_problem(self, shape: tuple[int, ...]) -> str:
        expected = f"(batch, {', '.join(map(str, self._shape))})"
        if shape == self._shape:
            return (
                f"an observation of shape {shape} has no batch dimension: pass {expected}, one row per environment, "
                "for example observation[None]"
            )
        return f"observations have the shape {shape}, but the bonus was made for {expected}"


def _as_array(observations: Any) -> Array:
    try:
        return np.asarray(observations)
    except (ValueError, TypeError, RuntimeError) as error:  # rows of different shapes; a tensor on another device
        raise BadInputError(f"observations are no array ({error}): pass one row per environment") from error


def _finite(observations: Array) -> Array:
    if observations.dtype != np.uint8 and not np.isfinite(observations).all():
        raise BadInputError("an observation has NaN or infinity, which no bonus can learn from: fix the environment")
    return observations
