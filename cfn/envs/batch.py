"""A batch of N environments, stepped together; the training loop always sees batches, and N is 1 by default.

There is no autoreset. The observation that ends an episode is returned in `next_observations` like any other, so that
the value of a truncated state can be bootstrapped from it. Ended environments are reset explicitly, each episode with
its own seed, so the episode's seed and the actions since restore an environment at any time. Gymnasium's vector
environments offer neither this nor continuing when one of several environments fails. ALE could save its state
directly, but restoring it would make compiled code trust bytes from a file; replaying the actions takes half a
millisecond per step.
"""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from cfn import seeding
from cfn.envs.checks import as_state
from cfn.envs.copies import Copies, Fault, Make, Start
from cfn.envs.episode_reports import EpisodeReports
from cfn.envs.workers import Workers
from cfn.errors import UsageError
from cfn.types import Array, Metrics, State

log = logging.getLogger(__name__)

RESET_ATTEMPTS = 3
"""Number of resets, each of a new instance of the environment, before the run gives up."""


class BrokenEnvError(UsageError):
    """An environment raised an error.

    Args:
        which: Name of the environment in the message.
        where: Failed call: `reset` or `step`.
        reason: Error that it raised, on one line.
        error: The error, for its traceback.
    """

    def __init__(self, which: str, where: str, reason: str, error: BaseException | None) -> None:
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

    This class remembers the episodes, and `Copies` or `Workers` call the environments: the numbers and the state do not
    depend on the number of processes.

    Args:
        make: Function that makes one environment; several processes need one that can be pickled.
        num_envs: Number of environments.
        seed: Seed of the run; the seed of each episode follows from it.
        on_fault: Function called with each error of an environment, after it was handled; by default, one without
            effect.
        workers: Number of processes that step the environments; 1: this process does.
    """

    def __init__(
        self,
        make: Make,
        num_envs: int,
        seed: int,
        on_fault: Callable[[BrokenEnvError], object] = str,
        workers: int = 1,
    ) -> None:
        self._seed, self._num_envs, self._on_fault = seed, num_envs, on_fault
        self.copies = Copies(make, range(num_envs)) if workers == 1 else Workers(make, num_envs, workers, seed)
        self._episodes = np.zeros(num_envs, np.int64)  # episodes begun, by environment
        self._actions: list[list[Any]] = [[] for _ in range(num_envs)]  # of the current episodes
        self._ended = np.ones(num_envs, np.bool_)
        self.begins = np.ones(num_envs, np.bool_)
        """Which environments are at the first observation of an episode."""
        self._states: list[State] | None = [()] * num_envs
        self._observations: list[Array] = [np.zeros(0)] * num_envs
        self._failures = 0  # without those that the environments count themselves
        self._reports = EpisodeReports(self.copies.is_solved if self.copies.description.has_criterion else None)
        self.lost = np.zeros(num_envs, np.bool_)
        """Which environments could not be restored with the last loaded state; their episodes have ended."""

    @property
    def observation_space(self) -> gym.Space[Any]:
        """Observation space of one environment."""
        return self.copies.description.observation_space

    @property
    def action_space(self) -> gym.Space[Any]:
        """Action space of one environment."""
        return self.copies.description.action_space

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the numbers in a true state; empty if the environment gives none."""
        return self.copies.description.state_names

    @property
    def observation_note(self) -> str:
        """Sentence for users on entries of observations that are left out or flattened; empty if there are none."""
        return self.copies.description.observation_note

    @property
    def step_limit(self) -> int | None:
        """Steps after which an episode is truncated; None if there is no limit. Some are set by the first reset."""
        return self.copies.step_limit

    @property
    def failures(self) -> int:
        """Number of episodes that ended because an environment failed."""
        return self._failures + sum(map(self.copies.failures, range(self._num_envs)))

    @property
    def episode_metrics(self) -> Metrics:
        """Metrics that the environments report about their episodes, if an episode ended with the last step."""
        return self._reports.metrics if self._ended.any() else {}

    def begin_episodes(self) -> tuple[Array, list[State] | None]:
        """Reset the environments whose episodes have ended; at first, all of them.

        Returns:
            Current observations and true states s_t; the states are None if the environment reports none.

        Raises:
            BrokenEnvError: An environment failed in several resets.
        """
        ended = np.flatnonzero(self._ended).tolist()
        for i, start in zip(ended, self.copies.reset(ended, [self._next_seed(i) for i in ended]), strict=True):
            self._observations[i], state = self._begin(i, start)
            self._store_state(i, state)
            self._actions[i] = []
            self._ended[i] = False
        self.begins = np.array([not actions for actions in self._actions])
        return np.stack(self._observations), self._current_states()

    def step(self, actions: Array) -> Outcome:
        """Take one action in every environment."""
        rewards, (terminated, truncated) = np.zeros(len(actions)), np.zeros((2, len(actions)), np.bool_)
        cause = None
        for i, step in enumerate(self.copies.step(range(len(actions)), actions)):
            if isinstance(step, Fault):
                truncated[i] = True
                self._replace(i, "step", step, is_known=cause is not None and step.error is cause)
                cause = step.error
                continue
            self._observations[i], rewards[i] = step.observation, step.reward
            terminated[i], truncated[i] = step.terminated, step.truncated
            self._actions[i].append(actions[i])
            self._store_state(i, step.state)
            if step.report is not None:
                self._reports.add(step.report)
        self._ended = terminated | truncated
        return Outcome(np.stack(self._observations), self._current_states(), rewards, terminated, truncated)

    def close(self) -> None:
        """Close the environments."""
        self.copies.close()

    def state_dict(self) -> dict[str, Any]:
        return {
            "episodes": self._episodes,
            "actions": [np.array(actions) for actions in self._actions],
            "ended": self._ended,
            "observations": list(self._observations),
            "states": self._states,
            "failures": self.failures,
            "reports": self._reports.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore each environment: reset it with the episode's seed and replay the actions.

        An environment that does not reach its last observation is `lost`: its episode ends, and a new one begins.
        """
        self._states = None if state["states"] is None else [as_state(s) for s in state["states"]]
        self._observations = list(state["observations"])
        if "reports" in state:  # older checkpoints have none
            self._reports.load_state_dict(state["reports"])
        self._episodes, self._ended = state["episodes"].copy(), state["ended"].copy()
        self._actions = [list(actions) for actions in state["actions"]]
        running = np.flatnonzero(~self._ended).tolist()
        episodes = [(self._episode_seed(i), state["actions"][i]) for i in running]
        self.lost = np.zeros_like(self._ended)
        for i, reached in zip(running, self.copies.replay(running, episodes), strict=True):
            self.lost[i] = not self._is_restored(i, reached)
        self._ended |= self.lost
        for i in np.flatnonzero(self.lost).tolist():
            log.warning(
                f"Environment {i} could not be restored: its seed and actions now lead to another observation. "
                "Its episode ends here, and the resumed run will differ from an uninterrupted one."
            )
        self._failures = state["failures"] - sum(map(self.copies.failures, range(self._num_envs)))

    def _is_restored(self, i: int, reached: Array | Fault | None) -> bool:
        """Return whether a replayed episode has reached the last observation; create a failed environment again."""
        if isinstance(reached, Fault):
            log.debug("traceback:", exc_info=reached.error)
            self._recreate(i)
        if reached is None or isinstance(reached, Fault):
            return False
        floats = reached.dtype.kind == "f"
        return bool(np.array_equal(reached, self._observations[i], equal_nan=floats))

    def _begin(self, i: int, start: Start | Fault) -> Start:
        """Return the start of an episode; if its reset failed, begin the episode after that one.

        Raises `BrokenEnvError` if several resets fail. Other environments may have begun episodes by then.
        """
        for attempt in range(RESET_ATTEMPTS):
            self._episodes[i] += 1
            if not isinstance(start, Fault):
                return start
            broken = self._replace(i, "reset", start, is_known=attempt > 0)  # one line is enough
            if attempt + 1 < RESET_ATTEMPTS:
                (start,) = self.copies.reset([i], [self._next_seed(i)])
        raise broken

    def _episode_seed(self, i: int) -> int:
        """Return the seed of the episode that an environment began last."""
        return seeding.integer(self._seed, "train", i, int(self._episodes[i]) - 1)

    def _next_seed(self, i: int) -> int:
        return seeding.integer(self._seed, "train", i, int(self._episodes[i]))

    def _name(self, i: int) -> str:
        return f"environment {i} of {self._num_envs}"

    def _current_states(self) -> list[State] | None:
        return None if self._states is None else list(self._states)

    def _replace(self, i: int, where: str, fault: Fault, is_known: bool) -> BrokenEnvError:
        """Create a failed environment again, report the fault and return it; a known one is logged as a detail only."""
        broken = BrokenEnvError(self._name(i), where, *fault)
        level = logging.DEBUG if is_known else logging.WARNING
        log.log(level, f"{capitalized(broken)}: the environment is created again for the next episode.")
        log.debug("traceback:", exc_info=broken)
        self._failures += 1 + self.copies.failures(i)
        self._recreate(i)
        self._on_fault(broken)
        return broken

    def _recreate(self, i: int) -> None:
        if fault := self.copies.recreate(i):
            sentence = f"{self._name(i)} cannot be created again after it failed ({fault.reason})"
            raise UsageError(sentence) from fault.error

    def _store_state(self, i: int, state: State | UsageError | None) -> None:
        if self._states is None or state is None:
            self._states = None
            return
        if isinstance(state, UsageError):
            raise state
        known = self._states[0]
        if known and len(state) != len(known):
            raise UsageError(f"info['state'] is {state} after {known}: every true state must have the same length")
        self._states[i] = state


def capitalized(error: Exception) -> str:
    """Return an error's message as the beginning of a sentence."""
    return f"{str(error)[:1].upper()}{str(error)[1:]}"
