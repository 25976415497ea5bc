"""Evaluations: episodes without exploration, and the bonus asked about every state that was ever visited.

An evaluation looks and never touches: it plays in environments of its own, with seeds of its own, and neither the
replay, nor the counts, nor the bonus hears of it.
"""

import contextlib
import gc
import io
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
from cfn.envs.batch import BrokenEnvError, capitalized, require_numbers
from cfn.errors import UsageError
from cfn.run import Run
from cfn.tracking.base import Tracker
from cfn.truth import TrueCounts, count_errors
from cfn.types import Array, Metrics
from cfn.writing import write_whole

log = logging.getLogger(__name__)

PICTURES = 10
"""Pictures are drawn this many times over a run at the most: drawing takes longer than a short evaluation."""
CHUNK = 1024
"""How many states a bonus is asked about at once."""
ATTEMPTS = 2
"""How often episodes are begun whose environments break."""


def play(agent: Agent, envs: Sequence[gym.Env[Any, Any]], seeds: Sequence[int]) -> tuple[list[float], list[int]]:
    """Play one episode in each environment, all at once, as the agent acts when it does not explore.

    Returns:
        The episodes' raw returns and their lengths.

    Raises:
        BrokenEnvError: An environment failed.
    """
    observations = [
        _answer(i, env, "reset", seed=seed)[0] for i, (env, seed) in enumerate(zip(envs, seeds, strict=True))
    ]
    returns, lengths = [0.0] * len(envs), [0] * len(envs)
    playing = list(range(len(envs)))
    while playing:
        actions = agent.act(np.stack([observations[i] for i in playing]), explore=False)
        still = []
        for i, action in zip(playing, actions, strict=True):
            observations[i], reward, terminated, truncated, _ = _answer(i, envs[i], "step", action)
            returns[i] += float(reward)
            lengths[i] += 1
            if not (terminated or truncated):
                still.append(i)
        playing = still
    return returns, lengths


def _answer(which: int, env: gym.Env[Any, Any], call: str, *arguments: Any, **keys: Any) -> Any:
    """What an environment answers; if that is an error, it is the environment's and not the agent's."""
    try:
        answer = getattr(env, call)(*arguments, **keys)
        require_numbers(answer[0], answer[1] if call == "step" else 0.0)
        return answer
    except UsageError:
        raise
    except Exception as error:  # whatever an environment may do
        raise BrokenEnvError(f"environment {which} of an evaluation", call, error) from error


def ask(bonus: Bonus, truth: TrueCounts) -> Array:
    """B(s) of every visited state."""
    examples, states = truth.examples, truth.states
    starts = range(0, len(states), CHUNK)
    return np.concatenate([bonus.novelty(examples[i : i + CHUNK], states[i : i + CHUNK]) for i in starts])


def save_rooms(folder: Path, rooms: dict[int, Array]) -> None:
    """Keep an image of each room, once and whole."""
    (folder / "rooms").mkdir(exist_ok=True)
    for room, image in rooms.items():
        if not (path := folder / "rooms" / f"{room}.png").exists():
            file = io.BytesIO()
            imsave(file, image, cmap="gray", vmin=0, vmax=255, format="png")
            write_whole(path, file.getbuffer())


class Evaluation:
    """Evaluates a run whenever it is called, and writes down what it finds.

    If an environment raises an error, they are all made anew and the episodes are played once more; if that fails too,
    the evaluation goes without them.

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
        self._make_env = make_env
        self._envs = self._made()
        self.broken: str | None = None
        """What went wrong in an environment, if the run is to stop for it."""
        self.pictured = 0
        """How many of a run's pictures were drawn, or skipped."""

    def __call__(self, step: int, run: Run) -> Metrics:
        """Play, ask, and write the count table of this step."""
        returns, lengths = self._play(step)
        metrics: Metrics = {}
        if returns:
            metrics |= {"eval/return": float(np.mean(returns)), "eval/length": float(np.mean(lengths))}
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
            more_returns, more_lengths = self._round(seeds)
            if not more_returns:
                log.warning(f"The evaluation of step {step:,} ends after {len(returns)} episodes.")
                break
            returns += more_returns
            lengths += more_lengths
        return returns, lengths

    def _round(self, seeds: Sequence[int]) -> tuple[list[float], list[int]]:
        """An episode in each environment; none if they break whenever they are tried."""
        for _ in range(ATTEMPTS):
            try:
                return play(self._agent, self._envs, seeds)
            except BrokenEnvError as error:
                log.warning(f"{capitalized(error)}: the evaluation's environments are made anew.")
                log.debug("where it failed:", exc_info=error)
                self.broken = str(error) if self._config.on_error == "stop" else None
                self.close()
                self._envs = self._made()
        return [], []

    def _made(self) -> list[gym.Env[Any, Any]]:
        return [self._make_env() for _ in range(self._config.eval.episodes)]

    def due(self, step: int) -> int:
        """How many pictures a run should have been drawn by this step."""
        return step * PICTURES // self._config.steps

    def draw(self, step: int, run: Run, tracker: Tracker, last: bool = False) -> None:
        """Draw the run's pictures if it is time, or the last chance. What goes wrong in drawing stops no run."""
        picture = self.due(step)
        if not (last or picture > self.pictured):
            return
        self.pictured = picture
        try:
            tracker.log_pictures(step, plots.draw_run(run.folder, f"{run.setting}, seed {run.seed}"))
        except Exception as error:
            log.warning(f"The pictures of step {step:,} could not be drawn ({type(error).__name__}: {error}).")
        gc.collect()  # figures hold on to themselves: left to Python, some 30 MB of them gather over a run
        if self._table(step, run).exists():
            tracker.log_counts(step, self._table(step, run))

    @staticmethod
    def _table(step: int, run: Run) -> Path:
        return run.counts / f"step_{step:09}.csv"

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            with contextlib.suppress(Exception):  # one that is broken may not even do that
                env.close()
