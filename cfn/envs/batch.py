"""N environments at once, always: the loop sees batches, and N is 1 by default.

Gymnasium's vector API with autoreset *disabled*: the observation that ends an episode arrives as `next_observations`
like any other (a truncated state's value is bootstrapped from it), and the ended environments are restarted
explicitly, each episode with a seed of its own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from cfn import seeding
from cfn.errors import UsageError
from cfn.types import Array, State


class Transition(NamedTuple):
    """What came of a batch of actions; `next_observations` are never those of the episode after."""

    next_observations: Array
    next_states: list[State] | None
    rewards: Array
    terminated: Array
    truncated: Array


class EnvBatch:
    """`num_envs` copies of an environment, stepped together.

    Args:
        make: Makes one environment.
        num_envs: How many.
        seed: The run's seed, from which each episode's follows.
    """

    def __init__(self, make: Callable[[], gym.Env[Any, Any]], num_envs: int, seed: int) -> None:
        self._envs = SyncVectorEnv([make] * num_envs, autoreset_mode=AutoresetMode.DISABLED)
        self._seed = seed
        self._episodes = np.zeros(num_envs, np.int64)  # episodes begun, by environment
        self._ended = np.ones(num_envs, np.bool_)
        self._states: list[State] | None = [()] * num_envs
        self._observations: Array | None = None

    @property
    def observation_space(self) -> gym.Space[Any]:
        """Of one environment."""
        return self._envs.single_observation_space

    @property
    def action_space(self) -> gym.Space[Any]:
        """Of one environment."""
        return self._envs.single_action_space

    @property
    def state_names(self) -> tuple[str, ...]:
        """What the numbers of a true state are called, if the environment says so."""
        env = self._envs.envs[0]
        return tuple(env.get_wrapper_attr("state_names")) if env.has_wrapper_attr("state_names") else ()

    @property
    def failures(self) -> int:
        """Episodes that ended because the environment broke, where it counts them."""
        return sum(getattr(env.unwrapped, "failures", 0) for env in self._envs.envs)

    def begin_episodes(self) -> tuple[Array, list[State] | None]:
        """Restart the environments whose episode has ended (all of them, at first).

        Returns:
            The current observations and true states s_t; the states are None if the environment reports none.
        """
        if self._ended.any():
            seeds: list[int | None] = [
                seeding.integer(self._seed, "train", i, int(episode)) for i, episode in enumerate(self._episodes)
            ]
            self._observations, infos = self._envs.reset(seed=seeds, options={"reset_mask": self._ended.copy()})
            self._take_states(infos, self._ended)
            self._episodes += self._ended
            self._ended[:] = False
        assert self._observations is not None
        return self._observations, None if self._states is None else list(self._states)

    def step(self, actions: Array) -> Transition:
        """Act in every environment."""
        self._observations, rewards, terminated, truncated, infos = self._envs.step(actions)
        self._take_states(infos, np.ones_like(self._ended))
        self._ended = terminated | truncated
        states = None if self._states is None else list(self._states)
        return Transition(self._observations, states, rewards, terminated, truncated)

    def close(self) -> None:
        """Close the environments."""
        self._envs.close()

    def _take_states(self, infos: dict[str, Any], which: Array) -> None:
        if self._states is None or "state" not in infos:
            self._states = None
            return
        if isinstance(infos["state"], dict):
            raise _uncountable(infos["state"])
        for i in np.flatnonzero(which):
            state = infos["state"][i]
            if self._states[i] == () or not isinstance(state, tuple):  # the first is looked at, the rest are like it
                state = _whole_numbers(state)
            self._states[i] = state


def _whole_numbers(state: Any) -> State:
    """A state as a tuple of whole numbers, which can be counted, saved and plotted."""
    try:
        numbers = np.atleast_1d(np.asarray(state))
        if numbers.ndim == 1 and (numbers == numbers.astype(np.int64)).all():
            return tuple(numbers.astype(np.int64).tolist())
    except (TypeError, ValueError):
        pass
    raise _uncountable(state)


def _uncountable(state: Any) -> UsageError:
    return UsageError(f"info['state'] is {state!r}: a true state must be whole numbers, such as (3, 4)")
