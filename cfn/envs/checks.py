"""Checks of what environments return: observations, rewards and true states."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from cfn.errors import UsageError
from cfn.types import Array, State

LARGEST_REWARD = float(np.finfo(np.float32).max)
"""Largest reward, positive or negative, that is finite in a replay buffer."""

ONE_REWARD = "wrap the environment so that it adds them up, as LinearReward of mo-gymnasium does"
"""The advice for environments with several rewards."""


def as_array(space: gym.Space[Any], observation: Any) -> Array:
    """Return an observation as an array; raise `ValueError` if it must not reach a replay buffer.

    Args:
        space: Observation space. Gymnasium accepts lists and arrays of other shapes, with a warning.
        observation: Observation of one environment.
    """
    array = observation if isinstance(observation, np.ndarray) else np.asarray(observation)
    if array.shape != space.shape:
        raise ValueError(f"its observation has the shape {array.shape}, and its observation space {space.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("its observation holds NaN or infinity")
    if array.dtype != space.dtype:  # rare: the other checks cost little
        _require_values(array, np.dtype(space.dtype))
    return array if array is observation else array.astype(space.dtype, copy=False)


def _require_values(array: Array, expected: np.dtype[Any]) -> None:
    """Raise `ValueError` if an array would have other values as the type of the space, as which it is stored."""
    if array.dtype.kind == "b" or (expected.kind == "f" and array.dtype.kind in "iuf"):
        return
    if array.dtype.kind not in "iu" or expected.kind not in "iu":
        raise ValueError(f"its observation holds {array.dtype}, and its observation space {expected}")
    limits = np.iinfo(expected)
    if array.size and not (limits.min <= array.min() and array.max() <= limits.max):
        numbers = f"{array.min()} to {array.max()}"
        raise ValueError(f"its observation holds numbers from {numbers}, and its observation space {expected}")


def checked_entry(space: gym.Space[Any], value: Any) -> Any:
    """Return an entry of an observation, Box or discrete; raise `ValueError` if it is outside its space."""
    if isinstance(space, Box):
        return as_array(space, value)
    if isinstance(space, Discrete):
        return as_index(space, value)
    low: Any = getattr(space, "start", 0)
    size: Any = space.nvec if isinstance(space, MultiDiscrete) else 2
    array = np.asarray(value)
    whole = array.dtype.kind in "biuf" and array.shape == space.shape and (array == np.floor(array)).all()
    if not (whole and ((low <= array) & (array < low + size)).all()):
        raise ValueError(f"its observation is {value}, and its observation space {space}")
    return array.astype(space.dtype, copy=False)


def as_index(space: Discrete, value: Any) -> int:
    """Return a value of a Discrete space as an integer; raise `ValueError` if it is outside the space."""
    number = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if isinstance(number, int | float | np.number) and number in range(int(space.start), int(space.start + space.n)):
        return int(number)
    raise ValueError(f"its observation is {value}, and its observation space {space}")


def as_number(reward: Any) -> float:
    """Return a reward as a number; raise `ValueError` if a replay buffer, which has 32 bits for it, cannot hold it.

    Several rewards are a `UsageError`: a new instance of the environment would return them again.
    """
    number = reward.item() if isinstance(reward, np.ndarray) and reward.size == 1 else reward
    try:
        if abs(number := float(number)) <= LARGEST_REWARD:  # not so for NaN
            return number
    except TypeError:
        if np.size(reward) > 1:
            several = f"the environment's reward is {reward}, and a reward is one number"
            raise UsageError(f"{several}: {ONE_REWARD}") from None
        raise ValueError(f"its reward is {reward}, and a reward is one number") from None
    raise ValueError(f"its reward is {reward}")


def as_state(state: Any) -> State:
    """Return a true state as a tuple of integers; raise `UsageError` if it cannot be converted."""
    if type(state) is tuple and all(type(n) is int and n.bit_length() < 64 for n in state):
        return state  # the common case: the conversion below takes several times as long
    try:
        numbers = np.atleast_1d(np.asarray(state))
        if numbers.ndim == 1 and (numbers == numbers.astype(np.int64)).all():
            return tuple(numbers.astype(np.int64).tolist())
    except (TypeError, ValueError, OverflowError):
        pass
    raise UsageError(
        f"info['state'] is {state!r}: a true state must consist of whole numbers of at most 64 bits, such as (3, 4)"
    )
