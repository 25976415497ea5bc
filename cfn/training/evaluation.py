"""Evaluations: episodes without exploration, and the bonus compared with the true counts of all visited states.

An evaluation changes nothing: it has its own environments and seeds, and its steps reach neither the replay buffers,
the visit counts nor the bonus.
"""

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from cfn import seeding
from cfn.agents.base import Agent
from cfn.bonuses.base import Bonus
from cfn.config import Config
from cfn.envs.batch import BrokenEnvError, capitalized, require_numbers
from cfn.envs.generic import step_limit
from cfn.errors import UsageError
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
            returns[i] += float(reward)
            lengths[i] += 1
            if not (terminated or truncated or lengths[i] >= max_steps):
                still_running.append(i)
        running = still_running
    return returns, lengths


def call(name: str, env: gym.Env[Any, Any], method: str, *arguments: Any, **keys: Any) -> Any:
    """Call `reset` or `step` of an environment; raise `BrokenEnvError` if it fails, or returns NaN or infinity."""
    try:
        result = getattr(env, method)(*arguments, **keys)
        require_numbers(result[0], result[1] if method == "step" else 0.0)
        return result
    except UsageError:
        raise
    except Exception as error:  # an environment may raise anything
        raise BrokenEnvError(name, method, error) from error


def predicted_bonus(bonus: Bonus, visit_counts: VisitCounts) -> Array:
    """Return B(s) of every state that was visited or arrived in."""
    examples, states = visit_counts.examples, visit_counts.states
    starts = range(0, len(states), CHUNK)
    return np.concatenate([bonus.novelty(examples[i : i + CHUNK], states[i : i + CHUNK]) for i in starts])


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
        self.step_limit = step_limit(self._envs[0])
        """Step limit of the environment itself; None if it has none."""
        self.max_steps = config.eval.max_steps or self.step_limit or DEFAULT_MAX_STEPS
        """Steps after which an episode of an evaluation is truncated."""

    @property
    def is_long(self) -> bool:
        """Whether an evaluation may take so many steps that a run should be saved before it."""
        keys = self._config.eval
        return keys.every is not None and max(keys.episodes * self.max_steps, keys.steps) > LONG_EVALUATION

    def __call__(self, step: int, files: Layout, tracker: Tracker) -> Metrics:
        """Play episodes, compare the bonus, write the count table of this step, and return the metrics.

        Raises:
            EvaluationInterruptedError: A stop was requested during a long evaluation that a resumed run can repeat.
        """
        self._stop.activity = "step" if self._interruptible else "evaluation"
        try:
            returns, lengths = self._play(step, tracker)
        finally:
            self._stop.activity = "step"
        metrics: Metrics = {}
        if returns:
            metrics |= {"eval/return": float(np.mean(returns)), "eval/length": float(np.mean(lengths))}
        visits = self._visit_counts
        if len(visits):
            predicted = predicted_bonus(self._bonus, visits)
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
            tracker.evaluating(min(played / needed, 1) if needed else ended / len(self._envs))
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

    @property
    def _interruptible(self) -> bool:
        """Whether a signal interrupts an evaluation: a resumed run repeats it from the checkpoint before it."""
        return self.is_long and self._config.checkpoint.every is not None

    def _make_envs(self) -> list[gym.Env[Any, Any]]:
        return [self._make_env() for _ in range(self._config.eval.episodes)]

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            with contextlib.suppress(Exception):  # closing a failed environment may fail, too
                env.close()
