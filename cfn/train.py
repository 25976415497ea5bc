"""The loop: Algorithm 1 of the paper, for any agent, any bonus and any environment, with the true counts beside it."""

import logging
import time

import numpy as np
import torch

from cfn import device, seeding
from cfn.agents.base import Agent
from cfn.bonuses.base import Bonus
from cfn.config import Config
from cfn.envs.batch import EnvBatch
from cfn.evaluate import Evaluation
from cfn.run import Run
from cfn.tracking.base import Tracker, Trackers
from cfn.tracking.console import Console
from cfn.tracking.metrics_file import MetricsFile
from cfn.tracking.statistics import EpisodeStatistics, Means
from cfn.truth import TrueCounts
from cfn.types import Array

log = logging.getLogger(__name__)


class Training:
    """Owns everything that a run consists of. Making one checks that the parts fit; nothing is written yet.

    Args:
        config: The run's config.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.device = device.choose(config.device)
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        seeding.seed_everything(config.seed)
        self.step = 0
        self.envs = EnvBatch(lambda: config.env.build(render_mode=None), config.num_envs, config.seed)
        spaces = {"observation_space": self.envs.observation_space, "action_space": self.envs.action_space}
        self.agent: Agent = config.agent.build(**spaces, seed=seeding.integer(config.seed, "agent"))
        self.bonus: Bonus = config.bonus.build(
            observation_space=self.envs.observation_space, seed=seeding.integer(config.seed, "bonus")
        )
        self.truth = TrueCounts(self.envs.observation_space)
        self.evaluate = Evaluation(config, self.agent, self.bonus, self.truth)
        self.bonus.novelty(*self.envs.begin_episodes())  # a bonus that cannot judge such observations says so here

    def loop(self, run: Run, tracker: Tracker) -> None:
        """Algorithm 1. Steps are the agent's, summed over the environments."""
        config, envs, agent, bonus = self.config, self.envs, self.agent, self.bonus
        episodes, means, watch = EpisodeStatistics(config.num_envs), Means(), Stopwatch()
        while self.step < config.steps:
            observations, states = envs.begin_episodes()
            actions = agent.act(observations)
            next_observations, rewards, terminated, truncated = envs.step(actions)

            bonuses = bonus.observe(observations, states)
            learned = clip(rewards + bonuses, config.reward_clip)
            agent.observe(observations, actions, learned, next_observations, terminated, truncated)
            self.truth.visit(states, observations)
            self.step += config.num_envs

            for _ in range(self.due(agent.update_period)):
                means.add(agent.update())
            for _ in range(self.due(bonus.update_period)):
                means.add(bonus.update())

            tracker.tick(self.step)
            if finished := episodes.add(rewards, bonuses, terminated | truncated):
                tracker.log(self.step, finished | means.take())
            if self.due(config.eval.every) or self.step >= config.steps:
                self.evaluate(self.step, watch.rate(self.step), run, tracker)
                watch.restart(self.step)

    def due(self, period: int) -> int:
        """How often something that happens every `period` steps falls into the steps just taken."""
        return self.step // period - (self.step - self.config.num_envs) // period

    def run(self, run: Run) -> None:
        """Train to the end, and write down how it ended, however it did."""
        metrics = MetricsFile(run)
        tracker = Trackers([metrics, self.config.tracker.build(run=run), Console(run)])
        started = time.monotonic()
        state, error = "failed", None
        log.info(f"{run.setting}, seed {run.seed}: {self.config.steps:,} steps on {self.device}, in {run.shown}")
        run.write_summary("running", 0, 0.0, {})
        try:
            self.loop(run, tracker)
            state = "finished"
        except KeyboardInterrupt:
            state = "stopped"
            raise
        except Exception as exception:
            error = f"{type(exception).__name__}: {exception}"
            log.exception(f"failed at step {self.step:,}")
            raise
        finally:
            tracker.finish(failed=state == "failed")
            self.envs.close()
            self.evaluate.close()
            run.write_summary(state, self.step, time.monotonic() - started, metrics.latest, error)
            log.info(f"{state} after {time.monotonic() - started:,.0f} s; pictures and numbers are in {run.shown}")


class Stopwatch:
    """Times training alone, without the evaluations between."""

    def __init__(self) -> None:
        self.restart(0)

    def restart(self, step: int) -> None:
        """Time from this step on."""
        self._step, self._start = step, time.perf_counter()

    def rate(self, step: int) -> float:
        """Steps per second since the last restart."""
        return (step - self._step) / max(time.perf_counter() - self._start, 1e-9)


def clip(rewards: Array, bound: float | None) -> Array:
    """The reward that is learned from: r_ext + r_int, clipped in the paper's suites, as it is elsewhere."""
    return rewards if bound is None else np.clip(rewards, -bound, bound)
