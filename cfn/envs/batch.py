"""N environments at once, always: the loop sees batches, and N is 1 by default.

There is no autoreset: the observation that ends an episode arrives as `next_observations` like any other (a truncated
state's value is bootstrapped from it), and the ended environments are restarted explicitly, each episode with a seed of
its own. So an environment's place can be had again at any time: from the episode's seed and the actions since. That,
and going on when one environment of several breaks, is why this is not one of Gymnasium's vector environments. ALE
could say directly where it is, but only in bytes that its compiled code would have to trust when they are a stranger's;
to play on takes half a millisecond a step.
"""

import contextlib
import logging
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np

from cfn import seeding
from cfn.errors import UsageError
from cfn.types import Array, State

log = logging.getLogger(__name__)

RESETS = 3
"""Episodes that an environment is asked to begin, each time made anew, before it is given up."""


class BrokenEnvError(UsageError):
    """An environment raised an error.

    Args:
        which: Which one.
        where: What it was asked for: `reset` or `step`.
        error: What it raised.
    """

    def __init__(self, which: str, where: str, error: Exception) -> None:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        super().__init__(f"{which} failed in a {where} ({reason})")
        self.__cause__ = error


class Outcome(NamedTuple):
    """What came of a batch of actions; `next_observations` are never those of the episode after."""

    next_observations: Array
    next_states: list[State] | None
    rewards: Array
    terminated: Array
    truncated: Array


class EnvBatch:
    """`num_envs` copies of an environment, stepped together.

    An environment that raises an error in a step, or answers with what is no number, ends its episode there, truncated
    at the observation before, and is made anew. One that does so when it should begin an episode is made anew and
    begins the one after.

    Args:
        make: Makes one environment.
        num_envs: How many.
        seed: The run's seed, from which each episode's follows.
        on_error: Whether, after an error, to `stop` once the step is done (`broken` says why), or to go on with the
            `reset` environment.
    """

    def __init__(
        self,
        make: Callable[[], gym.Env[Any, Any]],
        num_envs: int,
        seed: int,
        on_error: Literal["stop", "reset"] = "stop",
    ) -> None:
        self._make, self._seed, self._on_error = make, seed, on_error
        self._envs = [make() for _ in range(num_envs)]
        self._episodes = np.zeros(num_envs, np.int64)  # episodes begun, by environment
        self._actions: list[list[Any]] = [[] for _ in range(num_envs)]  # of the current episodes
        self._ended = np.ones(num_envs, np.bool_)
        self._states: list[State] | None = [()] * num_envs
        self._observations: list[Array] = [np.zeros(0)] * num_envs
        self._failures = 0  # beside those that the environments count themselves
        self.broken: str | None = None
        """What went wrong in an environment, if the run is to stop for it."""
        self.lost = np.zeros(num_envs, np.bool_)
        """Which environments could not be brought back when a state was loaded: their episodes are over."""

    @property
    def observation_space(self) -> gym.Space[Any]:
        """Of one environment."""
        return self._envs[0].observation_space

    @property
    def action_space(self) -> gym.Space[Any]:
        """Of one environment."""
        return self._envs[0].action_space

    @property
    def state_names(self) -> tuple[str, ...]:
        """What the numbers of a true state are called, if the environment says so."""
        env = self._envs[0]
        return tuple(env.get_wrapper_attr("state_names")) if env.has_wrapper_attr("state_names") else ()

    @property
    def failures(self) -> int:
        """Episodes that ended because the environment broke."""
        return self._failures + sum(map(_failures, self._envs))

    def begin_episodes(self) -> tuple[Array, list[State] | None]:
        """Restart the environments whose episode has ended (all of them, at first).

        Returns:
            The current observations and true states s_t; the states are None if the environment reports none.
        """
        for i in np.flatnonzero(self._ended).tolist():
            self._observations[i], info = self._begin(i)
            self._take_state(i, info)
            self._actions[i] = []
            self._ended[i] = False
        return np.stack(self._observations), self._known_states()

    def step(self, actions: Array) -> Outcome:
        """Act in every environment."""
        rewards, (terminated, truncated) = np.zeros(len(actions)), np.zeros((2, len(actions)), np.bool_)
        for i, action in enumerate(actions):
            try:
                observation, reward, terminated[i], truncated[i], info = self._envs[i].step(action)
                require_numbers(observation, reward)
            except UsageError:
                raise
            except Exception as error:  # whatever an environment may do
                terminated[i], truncated[i] = False, True
                self._replace(i, BrokenEnvError(self._name(i), "step", error))
                continue
            self._observations[i], rewards[i] = observation, reward
            self._actions[i].append(action)
            self._take_state(i, info)
        self._ended = terminated | truncated
        return Outcome(np.stack(self._observations), self._known_states(), rewards, terminated, truncated)

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()

    def state_dict(self) -> dict[str, Any]:
        """Where each environment is: its episode, the actions since that began, and what is seen there."""
        return {
            "episodes": self._episodes,
            "actions": [np.array(actions) for actions in self._actions],
            "ended": self._ended,
            "observations": list(self._observations),
            "states": self._states,
            "failures": self.failures,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Bring each environment back to where it was: the episode's seed, and the actions again.

        One that does not get there is `lost`, and begins a new episode: what it would go on to did not follow from
        what was seen before.
        """
        self._states = None if state["states"] is None else [as_state(s) for s in state["states"]]
        self._observations = list(state["observations"])
        self._episodes, self._ended = state["episodes"].copy(), state["ended"].copy()
        self._actions = [list(actions) for actions in state["actions"]]
        self.lost = np.array([not (ended or self._brought_back(i)) for i, ended in enumerate(self._ended)])
        self._ended |= self.lost
        for i in np.flatnonzero(self.lost).tolist():
            log.warning(
                f"Environment {i} is not where it was: its seed and actions lead elsewhere than before. "
                "Its episode ends here, and the run goes on with a new one, not as if it had never stopped."
            )
        self._failures = state["failures"] - sum(map(_failures, self._envs))

    def _brought_back(self, i: int) -> bool:
        """Play an environment's episode again, and tell whether it is where it was."""
        try:
            observation, _ = self._envs[i].reset(seed=self._episode_seed(i))
            for action in self._actions[i]:
                observation, _, terminated, truncated, _ = self._envs[i].step(action)
                if terminated or truncated:
                    return False
        except UsageError:
            raise
        except Exception as error:  # whatever an environment may do
            log.debug("where it failed:", exc_info=error)
            self._renew(i)
            return False
        floats = observation.dtype.kind == "f"
        return bool(np.array_equal(observation, self._observations[i], equal_nan=floats))

    def _begin(self, i: int) -> tuple[Array, dict[str, Any]]:
        """Begin an environment's next episode, or if that cannot be, the one after it.

        Raises `BrokenEnvError` if none of several can be; the batch is then as it was before, but for episodes that
        other environments have begun.
        """
        for _ in range(RESETS):
            self._episodes[i] += 1
            try:
                observation, info = self._envs[i].reset(seed=self._episode_seed(i))
                require_numbers(observation)
                return observation, info
            except UsageError:
                raise
            except Exception as error:  # whatever an environment may do
                broken = BrokenEnvError(self._name(i), "reset", error)
                self._replace(i, broken)
        raise broken

    def _episode_seed(self, i: int) -> int:
        """Of the episode that an environment has begun last."""
        return seeding.integer(self._seed, "train", i, int(self._episodes[i]) - 1)

    def _name(self, i: int) -> str:
        return f"environment {i} of {len(self._envs)}"

    def _known_states(self) -> list[State] | None:
        return None if self._states is None else list(self._states)

    def _replace(self, i: int, broken: BrokenEnvError) -> None:
        """Make a broken environment anew, and say so."""
        log.warning(f"{capitalized(broken)}: its episode ends here, and it is made anew.")
        log.debug("where it failed:", exc_info=broken)
        self._failures += 1 + _failures(self._envs[i])
        self._renew(i)
        if self._on_error == "stop":
            self.broken = str(broken)

    def _renew(self, i: int) -> None:
        with contextlib.suppress(Exception):
            self._envs[i].close()
        try:
            self._envs[i] = self._make()
        except UsageError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(f"{self._name(i)} cannot be made anew after it failed ({reason})") from error

    def _take_state(self, i: int, info: dict[str, Any]) -> None:
        if self._states is None or "state" not in info:
            self._states = None
            return
        state = info["state"]
        if self._states[i] == () or not isinstance(state, tuple):  # the first is looked at, the rest are like it
            state = as_state(state)
        self._states[i] = state


def require_numbers(observation: Array, reward: Any = 0.0) -> None:
    """Refuse what nobody can learn from, before it is in any memory."""
    if not math.isfinite(reward):
        raise ValueError(f"its reward is {reward}")
    if observation.dtype.kind == "f" and not np.isfinite(observation).all():
        raise ValueError("its observation holds NaN or infinity")


def capitalized(error: Exception) -> str:
    """What an error says, as the beginning of a sentence."""
    return f"{str(error)[:1].upper()}{str(error)[1:]}"


def _failures(env: gym.Env[Any, Any]) -> int:
    """Of an environment that counts them itself."""
    return int(getattr(env.unwrapped, "failures", 0))


def as_state(state: Any) -> State:
    """A true state as a tuple of whole numbers, which can be counted, saved and plotted."""
    try:
        numbers = np.atleast_1d(np.asarray(state))
        if numbers.ndim == 1 and (numbers == numbers.astype(np.int64)).all():
            return tuple(numbers.astype(np.int64).tolist())
    except (TypeError, ValueError):
        pass
    raise _uncountable(state)


def _uncountable(state: Any) -> UsageError:
    return UsageError(f"info['state'] is {state!r}: a true state must be whole numbers, such as (3, 4)")
