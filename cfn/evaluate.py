"""Evaluations: episodes without exploration, and the bonus asked about every state that was ever visited.

An evaluation looks and never touches: it plays in environments of its own, with seeds of its own, and neither the
replay, nor the counts, nor the bonus hears of it.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from matplotlib.image import imsave

from cfn import seeding
from cfn.agents.base import Agent
from cfn.analysis import plots
from cfn.bonuses.base import Bonus
from cfn.config import Config
from cfn.run import Run
from cfn.tracking.base import Tracker
from cfn.truth import TrueCounts, count_errors
from cfn.types import Array, Metrics

log = logging.getLogger(__name__)

PICTURES = 10
"""Pictures are drawn this many times over a run at the most: drawing takes longer than a short evaluation."""
CHUNK = 1024
"""How many states a bonus is asked about at once."""


def play(agent: Agent, envs: Sequence[gym.Env[Any, Any]], seeds: Sequence[int]) -> tuple[list[float], list[int]]:
    """Play one episode in each environment, all at once, as the agent acts when it does not explore.

    Returns:
        The episodes' raw returns and their lengths.
    """
    observations = [env.reset(seed=seed)[0] for env, seed in zip(envs, seeds, strict=True)]
    returns, lengths = [0.0] * len(envs), [0] * len(envs)
    playing = list(range(len(envs)))
    while playing:
        actions = agent.act(np.stack([observations[i] for i in playing]), explore=False)
        still = []
        for i, action in zip(playing, actions, strict=True):
            observations[i], reward, terminated, truncated, _ = envs[i].step(action)
            returns[i] += float(reward)
            lengths[i] += 1
            if not (terminated or truncated):
                still.append(i)
        playing = still
    return returns, lengths


def ask(bonus: Bonus, truth: TrueCounts) -> Array:
    """B(s) of every visited state."""
    examples, states = truth.examples, truth.states
    starts = range(0, len(states), CHUNK)
    return np.concatenate([bonus.novelty(examples[i : i + CHUNK], states[i : i + CHUNK]) for i in starts])


def save_rooms(folder: Path, rooms: dict[int, Array]) -> None:
    """Keep an image of each room, once."""
    (folder / "rooms").mkdir(exist_ok=True)
    for room, image in rooms.items():
        if not (path := folder / "rooms" / f"{room}.png").exists():
            imsave(path, image, cmap="gray", vmin=0, vmax=255)


class Evaluation:
    """Evaluates a run whenever it is called, and writes down what it finds.

    Args:
        config: The run's config.
        agent: Plays.
        bonus: Is asked.
        truth: Knows what the bonus should have answered.
        make_env: Makes an environment.
    """

    def __init__(
        self,
        config: Config,
        agent: Agent,
        bonus: Bonus,
        truth: TrueCounts,
        make_env: Callable[[], gym.Env[Any, Any]],
    ) -> None:
        self._config = config
        self._agent = agent
        self._bonus = bonus
        self._truth = truth
        self._envs = [make_env() for _ in range(config.eval.episodes)]
        self._pictured = 0

    def __call__(self, step: int, run: Run) -> Metrics:
        """Play, ask, and write the count table of this step."""
        returns, lengths = self._play(step)
        metrics: Metrics = {"eval/return": float(np.mean(returns)), "eval/length": float(np.mean(lengths))}
        if len(self._truth):
            predicted = ask(self._bonus, self._truth)
            self._truth.write(self._table(step, run), predicted)
            metrics |= count_errors(predicted, self._truth.true_bonus)
            if (floor := self._truth.floor) is not None:
                metrics["bonus/floor_mse"] = float(np.mean((floor - self._truth.true_bonus) ** 2))
            metrics["explore/states"] = self._truth.seen
            if rooms := self._truth.rooms:
                metrics["explore/rooms"] = len(rooms)
                save_rooms(run.folder, rooms)
        return metrics

    def _play(self, step: int) -> tuple[list[float], list[int]]:
        """Episodes, as many at once as there are environments, until enough steps are played."""
        returns: list[float] = []
        lengths: list[int] = []
        while not returns or sum(lengths) < self._config.eval.steps:
            episodes = range(len(returns), len(returns) + len(self._envs))
            seeds = [seeding.integer(self._config.seed, "evaluate", step, i) for i in episodes]
            more_returns, more_lengths = play(self._agent, self._envs, seeds)
            returns += more_returns
            lengths += more_lengths
        return returns, lengths

    def draw(self, step: int, run: Run, tracker: Tracker, last: bool = False) -> None:
        """Draw the run's pictures if it is time, or the last chance. What goes wrong in drawing stops no run."""
        picture = step * PICTURES // self._config.steps
        if not (last or picture > self._pictured):
            return
        self._pictured = picture
        try:
            tracker.log_pictures(step, plots.draw_run(run.folder, f"{run.setting}, seed {run.seed}"))
        except Exception as error:
            log.warning(f"The pictures of step {step:,} could not be drawn ({type(error).__name__}: {error}).")
        if self._table(step, run).exists():
            tracker.log_counts(step, self._table(step, run))

    @staticmethod
    def _table(step: int, run: Run) -> Path:
        return run.counts / f"step_{step:09}.csv"

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()
