"""True states for environments that report none: discrete observations, or observations cut into bins."""

import math
from collections.abc import Callable, Sequence
from typing import Any, SupportsFloat

import gymnasium as gym

from cfn.envs.spaces import Numbers, numeric_entry
from cfn.errors import BadValueError
from cfn.types import PositiveFloat, State

Widths = PositiveFloat | list[PositiveFloat | None]
"""Width of the bins of all numbers, or one width per number; None leaves a number out of the true state."""
Bin = Widths | dict[str, Widths]
"""Widths of an observation, or of entries of a Dict observation by name; other entries are left out."""


class WithState(gym.Wrapper[Any, Any, Any, Any]):
    """Reports a true state computed from the observation, unless the environment reports one itself.

    Args:
        env: Environment to wrap.
        state: Function from an observation to its true state.
        names: Names of the numbers in a state; the loop tracks visits to a `room`.
    """

    def __init__(self, env: gym.Env[Any, Any], state: Callable[[Any], State], names: tuple[str, ...] = ()) -> None:
        super().__init__(env)
        self._state = state
        self.state_names = names

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, {"state": self._state(observation), **info}

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, {"state": self._state(observation), **info}


def counted(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return the environment with its observations, which are discrete numbers, as true states."""
    numbers = Numbers(env.observation_space)
    return WithState(env, lambda observation: tuple(map(int, numbers(observation))))


def binned(env: gym.Env[Any, Any], widths: Widths) -> gym.Env[Any, Any]:
    """Return the environment with the bins of its observations as true states; raise `BadValueError` for `bin`."""
    return WithState(env, _Bins(env.observation_space, widths, "bin"))


def binned_entries(env: gym.Env[Any, Any], widths: dict[str, Widths]) -> gym.Env[Any, Any]:
    """Return the environment with the bins of entries of its Dict observations, in the order of `widths`."""
    space = env.observation_space
    bins = {name: _Bins(numeric_entry(space, name, "bin"), width, f"bin.{name}") for name, width in widths.items()}
    if not bins:
        raise BadValueError("bin", "names no entry of the observation: name at least one, or set it to null")
    return WithState(env, lambda observation: tuple(n for name, bin in bins.items() for n in bin(observation[name])))


class _Bins:
    """Function from an observation to the bins of its numbers.

    Args:
        space: Observation space.
        widths: Width of all bins, or one per number.
        key: Config key of the widths, for errors.
    """

    def __init__(self, space: gym.Space[Any], widths: Widths, key: str) -> None:
        self._numbers = Numbers(space)
        listed: Sequence[float | None] = widths if isinstance(widths, list) else [widths] * self._numbers.size
        if len(listed) != self._numbers.size:
            raise BadValueError(
                key,
                f"needs {self._numbers.size} widths, one per number of {space}, and has {len(listed)}: "
                "add or remove widths (null leaves a number out)",
            )
        self._widths = [(i, width) for i, width in enumerate(listed) if width is not None]
        if not self._widths:
            raise BadValueError(key, "leaves out every number: give at least one width")

    def __call__(self, observation: Any) -> State:
        values = self._numbers(observation)
        return tuple(math.floor(values[i] / width) for i, width in self._widths)
