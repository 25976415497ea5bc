"""Functions on observation spaces: their entries, which of them are numbers, and flattening them to one vector."""

import math
from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.spaces.utils import flatten, flatten_space

from cfn.envs.checks import checked_entry
from cfn.errors import BadValueError, UsageError
from cfn.types import Array

Path = tuple[Any, ...]
"""Keys and indices that lead from an observation to one of its entries."""


def is_image(space: gym.Space[Any]) -> bool:
    """Return whether observations are images: bytes, height x width [x channels]."""
    return isinstance(space, Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)


def is_countable(space: gym.Space[Any]) -> bool:
    """Return whether observations consist of discrete numbers only, so that they are their own true states."""
    return all(isinstance(entry, Discrete | MultiDiscrete | MultiBinary) for entry in leaves(space).values())


def is_numeric(space: gym.Space[Any]) -> bool:
    """Return whether values of a space without entries are numbers; text, graphs and sequences are not."""
    return isinstance(space, Box | Discrete | MultiDiscrete | MultiBinary) and np.dtype(space.dtype).kind in "biuf"


def leaves(space: gym.Space[Any], path: Path = ()) -> dict[Path, gym.Space[Any]]:
    """Return the innermost entries of a space by their paths; a space without entries is its only one."""
    if not isinstance(space, Dict | Tuple):
        return {path: space}
    entries: Iterable[tuple[Any, gym.Space[Any]]]
    entries = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
    return {inner: leaf for key, entry in entries for inner, leaf in leaves(entry, (*path, key)).items()}


def numeric_entries(space: Dict) -> list[str]:
    """Return the names of the entries that contain numbers."""
    return [key for key, entry in space.spaces.items() if any(map(is_numeric, leaves(entry).values()))]


def numeric_entry(space: gym.Space[Any], name: str, key: str) -> gym.Space[Any]:
    """Return an entry of a Dict space by its name; raise `BadValueError` for the config key that names it."""
    if not isinstance(space, Dict):
        raise BadValueError(key, f"names an entry, but observations of {space} have no named entries: leave it out")
    names = numeric_entries(space)
    if name not in names:
        problem = "is not numeric" if name in space.spaces else "is not an entry of the observation"
        raise BadValueError(key, f"{name} {problem}: choose from {', '.join(names)}")
    return space[name]


def entry_at(path: Path, observation: Any) -> Any:
    """Return the entry of an observation at a path."""
    for key in path:
        observation = observation[key]
    return observation


class Numbers:
    """The numeric entries of an observation, in the order of the space.

    Args:
        space: Observation space.

    Attributes:
        size: Number of numbers in an observation.
        dropped: Names of the entries that are not numeric.
    """

    def __init__(self, space: gym.Space[Any]) -> None:
        self._leaves = {path: leaf for path, leaf in leaves(space).items() if is_numeric(leaf)}
        self.size = sum(math.prod(leaf.shape or ()) for leaf in self._leaves.values())
        self.dropped = [".".join(map(str, path)) for path in leaves(space) if path not in self._leaves]

    @property
    def only_image(self) -> tuple[Path, gym.Space[Any]] | None:
        """Path and space of the only numeric entry, if it is an image."""
        entries = list(self._leaves.items())
        return entries[0] if len(entries) == 1 and is_image(entries[0][1]) else None

    def __call__(self, observation: Any) -> list[Any]:
        """Return the numbers of an observation; a discrete entry is one number."""
        parts = [np.ravel(entry_at(path, observation)).tolist() for path in self._leaves]
        return [number for part in parts for number in part]


class Flattening(Numbers):
    """Conversion of observations to vectors: numeric entries are joined, discrete ones as one-hot vectors.

    Attributes:
        space: Space of the vectors. Bytes become floats, because networks take byte arrays for images.
    """

    def __init__(self, space: gym.Space[Any]) -> None:
        super().__init__(space)
        if not self._leaves:
            raise UsageError(f"observations of {space} cannot be converted to arrays: wrap the environment to do that")
        self._joined = Tuple(tuple(self._leaves.values()))
        flat: Any = flatten_space(self._joined)
        self._dtype = np.float32 if flat.dtype == np.uint8 else flat.dtype
        self.space = Box(flat.low, flat.high, flat.shape, self._dtype)

    def flatten(self, observation: Any) -> Array:
        """Return an observation as a vector."""
        entries = tuple(checked_entry(leaf, entry_at(path, observation)) for path, leaf in self._leaves.items())
        vector = np.asarray(flatten(self._joined, entries))
        return vector.astype(np.float32) if vector.dtype == np.uint8 else vector
