"""Any Gymnasium environment by its id (`env=gym env.id=CartPole-v1`)."""

import difflib
import math
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np

from cfn.errors import BadValue, UsageError
from cfn.types import Array, Positive, PositiveFloat, State


def make(
    id: str,
    kwargs: dict[str, Any] | None = None,
    max_steps: Positive | None = None,
    bin: PositiveFloat | None = None,
    render_mode: str | None = None,
) -> gym.Env[Any, Any]:
    """Make the environment `id`, with arrays as observations and, where it can be had, a true state for counts.

    Args:
        id: A Gymnasium id; `module:id` imports the module first.
        kwargs: Arguments of the environment's own constructor.
        max_steps: Steps until truncation; by default the id's own limit.
        bin: Width of the bins into which observations are cut to give the true state, for environments that do not
            report one in `info["state"]`. Discrete observations need none: they are the state.
        render_mode: `rgb_array` or None.
    """
    try:
        env = gym.make(id, max_episode_steps=max_steps, render_mode=render_mode, **(kwargs or {}))
    except (gym.error.UnregisteredEnv, gym.error.NamespaceNotFound, ModuleNotFoundError) as error:
        close = difflib.get_close_matches(id, gym.registry, n=5, cutoff=0.4)
        hint = f"close to it: {', '.join(close)}" if close else "gymnasium.pprint_registry() lists the ids"
        raise BadValue("id", f"Gymnasium knows no environment {id!r}; {hint}") from error
    except (gym.error.Error, TypeError, ImportError, AssertionError) as error:
        raise BadValue("id", f"{id} cannot be made: {error}") from error
    if env.spec is None or env.spec.max_episode_steps is None:
        raise BadValue("max_steps", f"{id} has no step limit of its own: set one, such as env.max_steps=1000")
    if isinstance(env.observation_space, gym.spaces.Discrete):
        return OneHot(env)
    if isinstance(env.observation_space, gym.spaces.Dict | gym.spaces.Tuple):
        env = gym.wrappers.FlattenObservation(env)
    if not isinstance(env.observation_space, gym.spaces.Box):
        raise UsageError(f"env.id: {id} observes a {type(env.observation_space).__name__}; arrays (Box) are needed")
    return BinnedState(env, bin) if bin is not None else env


class OneHot(gym.Wrapper[Array, Any, int, Any]):
    """Numbered observations as one-hot vectors; the number is the true state."""

    def __init__(self, env: gym.Env[int, Any]) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, gym.spaces.Discrete)
        self._start = int(env.observation_space.start)
        self.observation_space = gym.spaces.Box(0, 1, (int(env.observation_space.n),), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Reset the environment."""
        number, info = self.env.reset(seed=seed, options=options)
        return self._vector(number), {"state": (int(number),), **info}

    def step(self, action: Any) -> tuple[Array, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the environment."""
        number, reward, terminated, truncated, info = self.env.step(action)
        return self._vector(number), reward, terminated, truncated, {"state": (int(number),), **info}

    def _vector(self, number: int) -> Array:
        vector = np.zeros(self.observation_space.shape, np.float32)  # type: ignore[arg-type]
        vector[number - self._start] = 1
        return vector


class BinnedState(gym.Wrapper[Array, Any, Array, Any]):
    """Observations cut into bins of one width, as the true state of an environment that reports none."""

    def __init__(self, env: gym.Env[Array, Any], width: float) -> None:
        super().__init__(env)
        self._width = width

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Reset the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, {"state": self._bins(observation), **info}

    def step(self, action: Any) -> tuple[Array, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, {"state": self._bins(observation), **info}

    def _bins(self, observation: Array) -> State:
        return tuple(math.floor(value / self._width) for value in observation.ravel().tolist())
