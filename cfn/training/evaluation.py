"""Evaluations: episodes without exploration, and the bonus compared with the true counts of all visited states.

An evaluation changes nothing: it has its own environments and seeds, and its steps reach neither the replay buffers,
the visit counts nor the bonus.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from cfn import seeding
from cfn.agents.base import Agent
from cfn.bonuses.base import Bonus
from cfn.config import Config
from cfn.envs.batch import BrokenEnvError, capitalized
from cfn.envs.checks import as_array, as_number
from cfn.envs.generic import step_limit
from cfn.errors import FAULTS, UsageError, one_line
from cfn.runs.layout import Layout
from cfn.tracking.base import Tracker
from cfn.training.signals import StopRequest
from cfn.training.visit_counts import VisitCounts, arrival_error, bonus_errors
from cfn.types import Array, Metrics

log = logging.getLogger(__name__)

DEFAULT_MAX_STEPS = 10_000
"""Maximum steps of an episode in environments without a step limit."""
LONG_EVALUATION = 10_000
"""Steps above which an evaluation is long: a checkpoint is written before it, and a signal interrupts it."""
LONG_SECONDS = 20.0
"""Expected seconds above which an evaluation is long, too: a step of some environments takes a second."""
CHUNK = 1024
"""Number of states per call of the bonus."""
ATTEMPTS = 2
"""Number of times that episodes are played if an environment fails."""


class EvaluationInterruptedError(Exception):
    """A long evaluation was interrupted by a request to stop the run."""


def play_episodes(
    agent: Agent,
    envs: Sequence[gym.Env[Any, Any]],
    seeds: Sequence[int],
    max_steps: int,
    on_step: Callable[[int, int], None],
) -> tuple[list[float], list[int]]:
    """Play one episode in each environment, in parallel and without exploration.

    Args:
        agent: Agent to evaluate.
        envs: Environments.
        seeds: Seed of each episode.
        max_steps: Steps after which an episode is truncated.
        on_step: Function called before each step with the numbers of ended episodes and of steps so far. It may raise
            an error to interrupt the episodes.

    Returns:
        Raw returns and lengths of the episodes.

    Raises:
        BrokenEnvError: An environment failed.
    """
    names = [f"environment {i} of an evaluation" for i in range(len(envs))]
    observations = [call(name, env, "reset", seed=seed)[0] for name, env, seed in zip(names, envs, seeds, strict=True)]
    returns, lengths = [0.0] * len(envs), [0] * len(envs)
    running = list(range(len(envs)))
    while running:
        on_step(len(envs) - len(running), sum(lengths))
        actions = agent.act(np.stack([observations[i] for i in running]), explore=False)
        still_running = []
        for i, action in zip(running, actions, strict=True):
            observations[i], reward, terminated, truncated, _ = call(names[i], envs[i], "step", action)
            returns[i] += reward
            lengths[i] += 1
            if not (terminated or truncated or lengths[i] >= max_steps):
                still_running.append(i)
        running = still_running
    return returns, lengths


def call(name: str, env: gym.Env[Any, Any], method: str, *arguments: Any, **keys: Any) -> Any:
    """Call `reset` or `step` of an environment; raise `BrokenEnvError` if it fails, or returns NaN or infinity."""
    try:
        observation, *others = getattr(env, method)(*arguments, **keys)
        if method == "step":
            others[0] = as_number(others[0])
        return as_array(env.observation_space, observation), *others
    except UsageError:
        raise
    except FAULTS as error:
        raise BrokenEnvError(name, method, one_line(error), error) from error


def predicted_bonus(bonus: Bonus, visit_counts: VisitCounts, on_chunk: Callable[[], object] = str) -> Array:
    """Return B(s) of every state that was visited or arrived in.

    Args:
        bonus: Bonus to ask.
        visit_counts: The states.
        on_chunk: Function called before each chunk of states. It may raise an error to interrupt the evaluation.
    """
    examples, states = visit_counts.examples, visit_counts.states
    predicted = []
    for i in range(0, len(states), CHUNK):
        on_chunk()
        predicted.append(bonus.novelty(examples[i : i + CHUNK], states[i : i + CHUNK]))
    return np.concatenate(predicted)


class Evaluation:
    """Evaluates the agent and the bonus of a run.

    If an environment fails, all are created again and the episodes are repeated once; if that fails too, the
    evaluation continues without them.

    Args:
        config: Config of the run.
        agent: Agent to evaluate.
        bonus: Bonus to compare.
        visit_counts: True visit counts.
        make_env: Function that makes an environment.
        stop: Request to stop the run, which also receives errors of environments if `env.on_error` is `stop`.
    """

    def __init__(
        self,
        config: Config,
        agent: Agent,
        bonus: Bonus,
        visit_counts: VisitCounts,
        make_env: Callable[[], gym.Env[Any, Any]],
        stop: StopRequest,
    ) -> None:
        self._config = config
        self._agent = agent
        self._bonus = bonus
        self._visit_counts = visit_counts
        self._make_env = make_env
        self._stop = stop
        self._envs = self._make_envs()
        self._seconds_per_step: float | None = None  # of the last evaluation, like the seconds of its comparison
        self._seconds_to_compare = 0.0
        self._interruptible = False
        self.step_limit = step_limit(self._envs[0])
        """Step limit of the environment itself; None if it has none."""
        self.max_steps = config.eval.max_steps or self.step_limit or DEFAULT_MAX_STEPS
        """Steps after which an episode of an evaluation is truncated."""

    def prepare(self, saved: bool, training_seconds: float | None) -> bool:
        """Return whether to save the run now, because the next evaluation may be long; a signal then interrupts it.

        Args:
            saved: Whether the newest checkpoint is of this step, so that the evaluation can be repeated in any case.
            training_seconds: Seconds per step of training, the estimate for the first evaluation; None if unknown.
        """
        keys = self._config.eval
        steps = max(keys.episodes * self.max_steps, keys.steps)
        seconds = steps * (self._seconds_per_step or training_seconds or 0.0) + self._seconds_to_compare
        is_long = steps > LONG_EVALUATION or seconds > LONG_SECONDS
        self._interruptible = is_long or saved
        return is_long and not saved

    def __call__(self, step: int, files: Layout, tracker: Tracker) -> Metrics:
        """Play episodes, compare the bonus, write the count table of this step, and return the metrics.

        Raises:
            EvaluationInterruptedError: A signal came during a long evaluation. A resumed run repeats the evaluation.
        """
        started = time.perf_counter()
        self._stop.activity = "step" if self._interruptible else "evaluation"
        try:
            returns, lengths = self._play(step, tracker)
            played = time.perf_counter()
            metrics: Metrics = {}
            if returns:
                metrics |= {"eval/return": float(np.mean(returns)), "eval/length": float(np.mean(lengths))}
                self._seconds_per_step = (played - started) / sum(lengths)
            metrics |= self._compare(step, files)
            self._seconds_to_compare = time.perf_counter() - played
            return metrics
        finally:
            self._stop.activity = "step"

    def _compare(self, step: int, files: Layout) -> Metrics:
        """Compare the bonus with the true counts, and write the count table of this step."""
        metrics: Metrics = {}
        visits = self._visit_counts
        if len(visits):
            predicted = predicted_bonus(self._bonus, visits, self._check_stop)
            visits.write(files.count_table(step), predicted)
            metrics |= bonus_errors(predicted, visits.counts) | arrival_error(predicted, visits.arrivals)
            visited = np.flatnonzero(visits.counts).tolist()
            states = visits.states
            metrics |= self._bonus.report([states[i] for i in visited], visits.counts[visited])
            metrics["explore/states"] = visits.seen
            if rooms := visits.rooms:
                metrics["explore/rooms"] = len(rooms)
        return metrics

    def _play(self, step: int, tracker: Tracker) -> tuple[list[float], list[int]]:
        """Play rounds of one episode per environment, until `eval.steps` are reached."""
        returns: list[float] = []
        lengths: list[int] = []
        needed = self._config.eval.steps

        def on_step(ended: int, steps: int) -> None:
            played = sum(lengths) + steps
            count = len(self._envs)  # episodes run in parallel: most end late, so the steps show the progress as well
            done = played / needed if needed else max(ended / count, steps / (count * self.max_steps))
            tracker.evaluating(min(done, 1.0))
            self._check_stop()

        while not returns or sum(lengths) < needed:
            episodes = range(len(returns), len(returns) + len(self._envs))
            seeds = [seeding.integer(self._config.seed, "evaluate", step, i) for i in episodes]
            more_returns, more_lengths = self._play_round(seeds, on_step)
            if not more_returns:
                log.warning(f"The evaluation of step {step:,} ends after {len(returns)} episodes.")
                break
            returns += more_returns
            lengths += more_lengths
        return returns, lengths

    def _play_round(self, seeds: Sequence[int], on_step: Callable[[int, int], None]) -> tuple[list[float], list[int]]:
        """Play one episode in each environment; return nothing if environments fail in every attempt."""
        for _ in range(ATTEMPTS):
            try:
                return play_episodes(self._agent, self._envs, seeds, self.max_steps, on_step)
            except BrokenEnvError as error:
                log.warning(f"{capitalized(error)}: the environments of evaluations are created again.")
                log.debug("traceback:", exc_info=error)
                if self._config.on_error == "stop":
                    self._stop(error)
                self.close()
                self._envs = self._make_envs()
        return [], []

    def _check_stop(self) -> None:
        if self._stop.signal is not None and self._interruptible:
            raise EvaluationInterruptedError

    def _make_envs(self) -> list[gym.Env[Any, Any]]:
        return [self._make_env() for _ in range(self._config.eval.episodes)]

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            with contextlib.suppress(*FAULTS):  # closing a failed environment may fail, too
                env.close()
