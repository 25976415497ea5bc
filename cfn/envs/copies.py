"""Copies of an environment, called one after another, without any memory of their episodes.

`Copies` keeps them in this process, and `cfn.envs.workers.Workers` has the same methods for copies in other processes.
Errors of an environment are returned as a `Fault`. `UsageError` is raised: a new instance would not help.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym

from cfn.envs.checks import as_array, as_number, as_state
from cfn.envs.episode_reports import KEY
from cfn.envs.generic import step_limit
from cfn.errors import FAULTS, UsageError, one_line
from cfn.types import Array, Metrics, State

Make = Callable[[], gym.Env[Any, Any]]


class Start(NamedTuple):
    """Result of a reset.

    Attributes:
        observation: First observation of the episode.
        state: True state, None if the environment reports none, or the error that it cannot be counted.
    """

    observation: Array
    state: State | UsageError | None


class Step(NamedTuple):
    """Result of an action.

    Attributes:
        observation: Next observation.
        state: Next true state, as in `Start`.
        reward: Reward.
        terminated: Whether the episode terminated.
        truncated: Whether it was truncated.
        report: `info["episode_metrics"]` of the last step of an episode, if there is one.
    """

    observation: Array
    state: State | UsageError | None
    reward: float
    terminated: bool
    truncated: bool
    report: Mapping[str, Any] | None


class Fault(NamedTuple):
    """Error of an environment.

    Attributes:
        reason: The error on one line.
        error: The error, for its traceback; None if there is none.
    """

    reason: str
    error: BaseException | None


class Description(NamedTuple):
    """Properties of the environments, as the first one reports them.

    Attributes:
        observation_space: Observation space of one environment.
        action_space: Action space of one environment.
        state_names: Names of the numbers in a true state; empty if there are none.
        observation_note: Sentence for users on entries of observations; empty if there is none.
        has_criterion: Whether it has a method `is_solved`.
    """

    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]
    state_names: tuple[str, ...]
    observation_note: str
    has_criterion: bool


class Copies:
    """Copies of an environment in this process. Results come one by one, each after its environment was called.

    Args:
        make: Function that makes one environment.
        indices: Numbers of the environments in the whole batch.
    """

    def __init__(self, make: Make, indices: Iterable[int]) -> None:
        self._make = make
        self.envs = {i: make() for i in indices}
        self._first = min(self.envs)
        first = self.envs[self._first]
        self._is_solved = first.get_wrapper_attr("is_solved") if first.has_wrapper_attr("is_solved") else None
        self.description = Description(
            first.observation_space,
            first.action_space,
            tuple(first.get_wrapper_attr("state_names")) if first.has_wrapper_attr("state_names") else (),
            str(first.get_wrapper_attr("observation_note")) if first.has_wrapper_attr("observation_note") else "",
            self._is_solved is not None,
        )

    def reset(self, indices: Sequence[int], seeds: Sequence[int]) -> Iterator[Start | Fault]:
        """Begin an episode with a seed in each of these environments."""
        for i, seed in zip(indices, seeds, strict=True):
            result: Start | Fault
            try:
                observation, info = self.envs[i].reset(seed=seed)
                result = Start(self._as_array(observation), _state(info))
            except UsageError:
                raise
            except FAULTS as error:
                result = Fault(one_line(error), error)
            yield result

    def step(self, indices: Sequence[int], actions: Array) -> Iterator[Step | Fault]:
        """Take an action in each of these environments."""
        for i, action in zip(indices, actions, strict=True):
            result: Step | Fault
            try:
                observation, reward, terminated, truncated, info = self.envs[i].step(action)
                array, number = self._as_array(observation), as_number(reward)
                report = info.get(KEY) if terminated or truncated else None
                result = Step(array, _state(info), number, bool(terminated), bool(truncated), report)
            except UsageError:
                raise
            except FAULTS as error:
                result = Fault(one_line(error), error)
            yield result

    def replay(
        self, indices: Sequence[int], episodes: Sequence[tuple[int, Sequence[Any]]]
    ) -> Iterator[Array | Fault | None]:
        """Repeat an episode in each of these environments, from its seed and its actions.

        Yields:
            The observation that each reaches; None if the episode ends before.
        """
        for i, (seed, actions) in zip(indices, episodes, strict=True):
            result: Array | Fault | None
            try:
                result = self._replay(self.envs[i], seed, actions)
            except UsageError:
                raise
            except FAULTS as error:
                result = Fault(one_line(error), error)
            yield result

    def _replay(self, env: gym.Env[Any, Any], seed: int, actions: Sequence[Any]) -> Array | None:
        observation, _ = env.reset(seed=seed)
        for action in actions:
            observation, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                return None
        return self._as_array(observation)

    def recreate(self, i: int) -> Fault | None:
        """Create an environment again; return a fault if that fails."""
        with contextlib.suppress(*FAULTS):
            self.envs[i].close()
        try:
            self.envs[i] = self._make()
        except UsageError:
            raise
        except FAULTS as error:
            return Fault(one_line(error), error)
        return None

    def failures(self, i: int) -> int:
        """Return the number of failures that an environment has counted itself."""
        return int(getattr(self.envs[i].unwrapped, "failures", 0))

    def is_solved(self, episodes: int, means: Metrics) -> bool:
        """Return whether the environment's criterion is met."""
        assert self._is_solved is not None, "only an environment with a criterion is asked"
        return bool(self._is_solved(episodes, means))

    @property
    def step_limit(self) -> int | None:
        """Steps after which an episode is truncated; None if there is no limit. Some are set by the first reset."""
        return step_limit(self.envs[self._first])

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs.values():
            with contextlib.suppress(*FAULTS):  # a run that is complete must not fail here
                env.close()

    def _as_array(self, observation: Any) -> Array:
        return as_array(self.description.observation_space, observation)


def _state(info: Mapping[str, Any]) -> State | UsageError | None:
    if "state" not in info:
        return None
    try:
        return as_state(info["state"])
    except UsageError as error:
        return error
