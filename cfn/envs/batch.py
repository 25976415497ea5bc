"""A batch of N environments, stepped together; the training loop always sees batches, and N is 1 by default.

There is no autoreset. The observation that ends an episode is returned in `next_observations` like any other, so that
the value of a truncated state can be bootstrapped from it. Ended environments are reset explicitly, each episode with
its own seed, so the episode's seed and the actions since restore an environment at any time. Gymnasium's vector
environments offer neither this nor continuing when one of several environments fails. ALE could save its state
directly, but restoring it would make compiled code trust bytes from a file; replaying the actions takes half a
millisecond per step.
"""

import contextlib
import logging
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from cfn import seeding
from cfn.errors import UsageError
from cfn.types import Array, State

log = logging.getLogger(__name__)

RESET_ATTEMPTS = 3
"""Number of resets, each of a new instance of the environment, before the run gives up."""


class BrokenEnvError(UsageError):
    """An environment raised an error.

    Args:
        which: Name of the environment in the message.
        where: Failed call: `reset` or `step`.
        error: Error that it raised.
    """

    def __init__(self, which: str, where: str, error: Exception) -> None:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        super().__init__(f"{which} failed in {where}() ({reason})")
        self.__cause__ = error


class Outcome(NamedTuple):
    """Result of a batch of actions; `next_observations` belong to the same episodes, also where these end."""

    next_observations: Array
    next_states: list[State] | None
    rewards: Array
    terminated: Array
    truncated: Array


class EnvBatch:
    """`num_envs` copies of an environment, stepped together.

    If an environment raises an error in a step, or returns NaN or infinity, its episode is truncated at the previous
    observation and the environment is created again. If a reset fails, it is created again and begins the next episode.

    Args:
        make: Function that makes one environment.
        num_envs: Number of environments.
        seed: Seed of the run; the seed of each episode follows from it.
        on_fault: Function called with each error of an environment, after it was handled; by default, one without
            effect.
    """

    def __init__(
        self,
        make: Callable[[], gym.Env[Any, Any]],
        num_envs: int,
        seed: int,
        on_fault: Callable[[BrokenEnvError], object] = str,
    ) -> None:
        self._make, self._seed, self._on_fault = make, seed, on_fault
        self._envs = [make() for _ in range(num_envs)]
        self._episodes = np.zeros(num_envs, np.int64)  # episodes begun, by environment
        self._actions: list[list[Any]] = [[] for _ in range(num_envs)]  # of the current episodes
        self._ended = np.ones(num_envs, np.bool_)
        self.begins = np.ones(num_envs, np.bool_)
        """Which environments are at the first observation of an episode."""
        self._states: list[State] | None = [()] * num_envs
        self._observations: list[Array] = [np.zeros(0)] * num_envs
        self._failures = 0  # without those that the environments count themselves
        self.lost = np.zeros(num_envs, np.bool_)
        """Which environments could not be restored with the last loaded state; their episodes have ended."""

    @property
    def observation_space(self) -> gym.Space[Any]:
        """Observation space of one environment."""
        return self._envs[0].observation_space

    @property
    def action_space(self) -> gym.Space[Any]:
        """Action space of one environment."""
        return self._envs[0].action_space

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the numbers in a true state; empty if the environment gives none."""
        env = self._envs[0]
        return tuple(env.get_wrapper_attr("state_names")) if env.has_wrapper_attr("state_names") else ()

    @property
    def observation_note(self) -> str:
        """Sentence for users on entries of observations that are left out or flattened; empty if there are none."""
        env = self._envs[0]
        return str(env.get_wrapper_attr("observation_note")) if env.has_wrapper_attr("observation_note") else ""

    @property
    def failures(self) -> int:
        """Number of episodes that ended because an environment failed."""
        return self._failures + sum(map(_own_failures, self._envs))

    def begin_episodes(self) -> tuple[Array, list[State] | None]:
        """Reset the environments whose episodes have ended; at first, all of them.

        Returns:
            Current observations and true states s_t; the states are None if the environment reports none.

        Raises:
            BrokenEnvError: An environment failed in several resets.
        """
        for i in np.flatnonzero(self._ended).tolist():
            self._observations[i], info = self._begin(i)
            self._store_state(i, info)
            self._actions[i] = []
            self._ended[i] = False
        self.begins = np.array([not actions for actions in self._actions])
        return np.stack(self._observations), self._current_states()

    def step(self, actions: Array) -> Outcome:
        """Take one action in every environment."""
        rewards, (terminated, truncated) = np.zeros(len(actions)), np.zeros((2, len(actions)), np.bool_)
        for i, action in enumerate(actions):
            try:
                observation, reward, terminated[i], truncated[i], info = self._envs[i].step(action)
                require_numbers(observation, reward)
            except UsageError:
                raise
            except Exception as error:  # an environment may raise anything
                terminated[i], truncated[i] = False, True
                self._replace(i, BrokenEnvError(self._name(i), "step", error))
                continue
            self._observations[i], rewards[i] = observation, reward
            self._actions[i].append(action)
            self._store_state(i, info)
        self._ended = terminated | truncated
        return Outcome(np.stack(self._observations), self._current_states(), rewards, terminated, truncated)

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            with contextlib.suppress(Exception):  # a run that is complete must not fail here
                env.close()

    def state_dict(self) -> dict[str, Any]:
        return {
            "episodes": self._episodes,
            "actions": [np.array(actions) for actions in self._actions],
            "ended": self._ended,
            "observations": list(self._observations),
            "states": self._states,
            "failures": self.failures,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore each environment: reset it with the episode's seed and replay the actions.

        An environment that does not reach its last observation is `lost`: its episode ends, and a new one begins.
        """
        self._states = None if state["states"] is None else [as_state(s) for s in state["states"]]
        self._observations = list(state["observations"])
        self._episodes, self._ended = state["episodes"].copy(), state["ended"].copy()
        self._actions = [list(actions) for actions in state["actions"]]
        self.lost = np.array([not (ended or self._replay(i)) for i, ended in enumerate(self._ended)])
        self._ended |= self.lost
        for i in np.flatnonzero(self.lost).tolist():
            log.warning(
                f"Environment {i} could not be restored: its seed and actions now lead to another observation. "
                "Its episode ends here, and the resumed run will differ from an uninterrupted one."
            )
        self._failures = state["failures"] - sum(map(_own_failures, self._envs))

    def _replay(self, i: int) -> bool:
        """Replay the current episode of an environment; return whether it reaches the same observation."""
        try:
            observation, _ = self._envs[i].reset(seed=self._episode_seed(i))
            for action in self._actions[i]:
                observation, _, terminated, truncated, _ = self._envs[i].step(action)
                if terminated or truncated:
                    return False
        except UsageError:
            raise
        except Exception as error:  # an environment may raise anything
            log.debug("traceback:", exc_info=error)
            self._recreate(i)
            return False
        floats = observation.dtype.kind == "f"
        return bool(np.array_equal(observation, self._observations[i], equal_nan=floats))

    def _begin(self, i: int) -> tuple[Array, dict[str, Any]]:
        """Begin the next episode of an environment; if its reset fails, begin the episode after that one.

        Raises `BrokenEnvError` if several resets fail. Other environments may have begun episodes by then.
        """
        for _ in range(RESET_ATTEMPTS):
            self._episodes[i] += 1
            try:
                observation, info = self._envs[i].reset(seed=self._episode_seed(i))
                require_numbers(observation)
                return observation, info
            except UsageError:
                raise
            except Exception as error:  # an environment may raise anything
                broken = BrokenEnvError(self._name(i), "reset", error)
                self._replace(i, broken)
        raise broken

    def _episode_seed(self, i: int) -> int:
        """Return the seed of the episode that an environment began last."""
        return seeding.integer(self._seed, "train", i, int(self._episodes[i]) - 1)

    def _name(self, i: int) -> str:
        return f"environment {i} of {len(self._envs)}"

    def _current_states(self) -> list[State] | None:
        return None if self._states is None else list(self._states)

    def _replace(self, i: int, broken: BrokenEnvError) -> None:
        """Create a failed environment again, and report the fault."""
        log.warning(f"{capitalized(broken)}: the environment is created again for the next episode.")
        log.debug("traceback:", exc_info=broken)
        self._failures += 1 + _own_failures(self._envs[i])
        self._recreate(i)
        self._on_fault(broken)

    def _recreate(self, i: int) -> None:
        with contextlib.suppress(Exception):
            self._envs[i].close()
        try:
            self._envs[i] = self._make()
        except UsageError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(f"{self._name(i)} cannot be created again after it failed ({reason})") from error

    def _store_state(self, i: int, info: dict[str, Any]) -> None:
        if self._states is None or "state" not in info:
            self._states = None
            return
        state, known = as_state(info["state"]), self._states[0]
        if known and len(state) != len(known):
            raise UsageError(f"info['state'] is {state} after {known}: every true state must have the same length")
        self._states[i] = state


def require_numbers(observation: Array, reward: Any = 0.0) -> None:
    """Raise `ValueError` for NaN or infinity, before it reaches a replay buffer."""
    if not math.isfinite(reward):
        raise ValueError(f"its reward is {reward}")
    if observation.dtype.kind == "f" and not np.isfinite(observation).all():
        raise ValueError("its observation holds NaN or infinity")


def capitalized(error: Exception) -> str:
    """Return an error's message as the beginning of a sentence."""
    return f"{str(error)[:1].upper()}{str(error)[1:]}"


def _own_failures(env: gym.Env[Any, Any]) -> int:
    """Return the number of failures that an environment has counted itself."""
    return int(getattr(env.unwrapped, "failures", 0))


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
