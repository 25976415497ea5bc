"""Any Gymnasium environment by its id (`env=gym env.id=CartPole-v1`)."""

import difflib
import logging
import math
from collections.abc import Callable
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np

from cfn.errors import BadValueError, UsageError
from cfn.types import Array, Positive, PositiveFloat, State

log = logging.getLogger(__name__)


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
        close = difflib.get_close_matches(id, gym.registry, n=5, cutoff=0.6)
        hint = f"close to it: {', '.join(close)}" if close else "gymnasium.pprint_registry() lists the ids"
        raise BadValueError("id", f"Gymnasium knows no environment {id!r}; {hint}") from error
    except Exception as error:  # whatever its constructor may do with the arguments it is given
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadValueError("kwargs" if kwargs else "id", f"{id} cannot be made: {reason}") from error
    if env.spec is None or env.spec.max_episode_steps is None:
        log.warning(f"Gymnasium knows no step limit of {id}: if its episodes need not end, set env.max_steps.")
    env = with_arrays(env)
    return binned(env, bin) if bin is not None else env


def with_arrays(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The environment with arrays as observations: numbers become one-hot vectors, structures are flattened."""
    space = env.observation_space
    if isinstance(space, gym.spaces.Discrete):
        return one_hot(env, space)
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple | gym.spaces.MultiDiscrete | gym.spaces.MultiBinary):
        env = gym.wrappers.FlattenObservation(env)
    if not isinstance(env.observation_space, gym.spaces.Box):
        raise UsageError(f"the environment observes {space}, of which no array can be made")
    return env


class WithState(gym.Wrapper[Any, Any, Any, Any]):
    """Reports a true state, read off the observation, unless the environment reports one itself.

    Args:
        env: The environment.
        state: The true state that an observation tells.
        view: What becomes of the observation.
        names: What the numbers of a state are called, where that matters: a `room` is tracked.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        state: Callable[[Any], State],
        view: Callable[[Any], Array],
        names: tuple[str, ...] = (),
    ) -> None:
        super().__init__(env)
        self._state = state
        self._view = view
        self.state_names = names

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Reset the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._view(observation), {"state": self._state(observation), **info}

    def step(self, action: Any) -> tuple[Array, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._view(observation), reward, terminated, truncated, {"state": self._state(observation), **info}


def one_hot(env: gym.Env[Any, Any], space: gym.spaces.Discrete) -> gym.Env[Any, Any]:
    """Numbered observations as one-hot vectors; the number is the true state."""
    rows = np.eye(int(space.n), dtype=np.float32)
    wrapped = WithState(env, state=lambda n: (int(n),), view=lambda n: rows[n - int(space.start)])
    wrapped.observation_space = gym.spaces.Box(0, 1, (int(space.n),), np.float32)
    return wrapped


def binned(env: gym.Env[Any, Any], width: float) -> gym.Env[Any, Any]:
    """Observations as they are, and cut into bins of one width as the true state."""

    def bins(observation: Array) -> State:
        return tuple(math.floor(value / width) for value in observation.ravel().tolist())

    return WithState(env, state=bins, view=lambda observation: observation)
