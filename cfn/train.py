"""The loop: Algorithm 1 of the paper, for any agent, any bonus and any environment, with the true counts beside it."""

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from cfn import device, memory, seeding
from cfn.agents.base import Agent
from cfn.bonuses.base import Bonus
from cfn.config import Config
from cfn.envs.batch import BrokenEnvError, EnvBatch
from cfn.envs.generic import with_arrays
from cfn.envs.stack import StackFrames, newest, newest_space
from cfn.evaluate import Evaluation
from cfn.replay.frames import FrameStore
from cfn.run import Run
from cfn.saving import Saving
from cfn.stopping import Stopping
from cfn.tracking.base import Tracker, Trackers
from cfn.tracking.console import Console
from cfn.tracking.metrics_file import MetricsFile
from cfn.tracking.statistics import EpisodeStatistics, Means, finite
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
        torch.set_num_threads(config.threads or device.DEFAULT_THREADS)
        seeding.seed_everything(config.seed)
        self.step, self.seconds = 0, 0.0
        self.envs = EnvBatch(self.make_env, config.num_envs, config.seed, config.on_error)
        frame_space = newest_space(self.envs.observation_space, config.frame_stack)
        self.frames = frames = FrameStore(frame_space.shape or (), frame_space.dtype)  # shared: each is kept once
        self.agent: Agent = config.agent.build(
            observation_space=self.envs.observation_space,
            action_space=self.envs.action_space,
            frame_stack=config.frame_stack,
            num_envs=config.num_envs,
            steps=config.steps,
            frames=frames,
            device=self.device,
            seed=seeding.integer(config.seed, "agent"),
        )
        self.bonus: Bonus = config.bonus.build(
            observation_space=frame_space,
            steps=config.steps,
            frames=frames,
            device=self.device,
            seed=seeding.integer(config.seed, "bonus"),
        )
        memory.require_together({"agent.capacity": self.agent.full_bytes, "bonus.capacity": self.bonus.full_bytes})
        device.speed_up((*self.agent.networks, *self.bonus.networks), self.device, config.compile, config.bf16)
        self.truth = TrueCounts(frame_space, self.envs.state_names)
        self.evaluate = Evaluation(config, self.agent, self.bonus, self.truth, self.make_env)
        self.episodes, self.means = EpisodeStatistics(config.num_envs), Means()
        observations, states = self.envs.begin_episodes()
        self.bonus.novelty(newest(observations, config.frame_stack), states)  # what it cannot judge, it refuses here

    def make_env(self, render_mode: str | None = None) -> gym.Env[Any, Any]:
        """One environment, as the config has it, with arrays as observations."""
        env: gym.Env[Any, Any] = with_arrays(self.config.env.build(render_mode=render_mode))
        return StackFrames(env, self.config.frame_stack) if self.config.frame_stack > 1 else env

    def loop(self, run: Run, tracker: Tracker, save: Saving) -> None:
        """Algorithm 1. Steps are the agent's, summed over the environments."""
        config, envs, agent, bonus = self.config, self.envs, self.agent, self.bonus
        episodes, means, watch = self.episodes, self.means, Stopwatch(self.step)
        while self.step < config.steps:
            observations, states = envs.begin_episodes()
            actions = agent.act(observations)
            next_observations, next_states, rewards, terminated, truncated = envs.step(actions)

            seen = newest(observations, config.frame_stack)
            bonuses = bonus.observe(seen, states)
            learned = clip(rewards + bonuses, config.reward_clip)
            agent.observe(observations, actions, learned, next_observations, terminated, truncated)
            self.truth.visit(states, seen, bonus.flipped)
            self.truth.arrive(next_states)
            self.step += config.num_envs

            for _ in range(self.due(agent.update_period)):
                means.add(finite(self.step, agent.update()))
            for _ in range(self.due(bonus.update_period)):
                means.add(finite(self.step, bonus.update()))

            tracker.tick(self.step)
            row = episodes.add(rewards, bonuses, terminated | truncated)
            if evaluating := self.due(config.eval.every) > 0 or self.step >= config.steps:
                row |= {"speed/steps_per_second": watch.rate(self.step)} | self.evaluate(self.step, run)
                row |= {"train/failures": failures} if (failures := envs.failures) else {}
            if row:
                tracker.log(self.step, finite(self.step, row | means.take()))
            if evaluating:
                self.evaluate.draw(self.step, run, tracker)
                watch.restart(self.step)
            save(self)

    @property
    def broken(self) -> str | None:
        """What went wrong in an environment, if the run is to stop for it."""
        return self.envs.broken or self.evaluate.broken

    def due(self, period: int) -> int:
        """How often something that happens every `period` steps falls into the steps just taken."""
        return self.step // period - (self.step - self.config.num_envs) // period

    def run(self, run: Run) -> None:
        """Train to the end, and write down how it ended, however it did."""
        metrics = MetricsFile(run)
        tracker = Trackers([metrics, self.config.tracker.build(run=run), Console(run, self.step)])
        started = time.monotonic() - self.seconds
        state, error = "failed", None
        log.info(f"{run.setting}, seed {run.seed}: {self.config.steps:,} steps on {self.device}, in {run.shown}")
        memory.announce(self.agent.full_bytes + self.bonus.full_bytes)
        run.write_summary("running", self.step, self.seconds, metrics.latest)
        for part, base in ((self.agent, Agent), (self.bonus, Bonus)):
            if self.config.checkpoint.every and type(part).state_dict is base.state_dict:
                log.warning(f"{type(part).__name__} has no state_dict: a resumed run will begin it anew.")
        try:
            with Stopping() as stopping:
                save = Saving(self.config.checkpoint, run, metrics, started, stopping)
                try:
                    self.loop(run, tracker, save)
                except BrokenEnvError as broken:  # no episode can be begun, between one step and the next
                    self.envs.broken = str(broken)
                    save(self)
            state = "finished"
        except KeyboardInterrupt:
            state = "stopped"
            raise
        except Exception as exception:
            error = f"{type(exception).__name__}: {exception}"
            log.exception(f"failed at step {self.step:,}")
            raise
        finally:
            if state == "stopped":
                self.evaluate.draw(self.step, run, tracker, last=True)
            hidden = () if state == "finished" else (OSError,)  # a full disk, which the error in flight tells of
            with contextlib.suppress(*hidden):
                tracker.finish(failed=state == "failed")
            with contextlib.suppress(*hidden):
                run.write_summary(state, self.step, time.monotonic() - started, metrics.latest, error)
            self.envs.close()
            self.evaluate.close()
            log.info(f"{state} after {time.monotonic() - started:,.0f} s: {run.shown}")

    def state_dict(self) -> dict[str, Any]:
        """All that the run is, by its parts. If a loss is no longer a number, there is nothing to go on with."""
        finite(self.step, self.means.look())  # on a device, that was not looked at yet
        return {
            "loop": {
                "step": self.step,
                "episodes": self.episodes.state_dict(),
                "means": self.means.state_dict(),
                "pictured": self.evaluate.pictured,
                "generators": seeding.global_states(self.device),
            },
            "envs": self.envs.state_dict(),
            "frames": self.frames.state_dict(),
            "agent": self.agent.state_dict(),
            "bonus": self.bonus.state_dict(),
            "truth": self.truth.state_dict(),
        }

    def load_learned(self, read: Callable[[str], Any]) -> None:
        """Take over what agent and bonus have learned, to play; `read` gives the part of each."""
        self.agent.load_state_dict(read("agent"))
        self.bonus.load_state_dict(read("bonus"))

    def load(self, read: Callable[[str], Any]) -> None:
        """Become the run that was saved; `read` gives one part of `state_dict` at a time, for memory's sake."""
        for name in ("frames", "agent", "bonus", "truth", "envs"):
            getattr(self, name).load_state_dict(read(name))
        loop = read("loop")
        self.episodes.load_state_dict(loop["episodes"])
        self.episodes.drop(self.envs.lost)
        self.agent.cut(self.envs.lost)
        self.means.load_state_dict(loop["means"])
        self.step = loop["step"]
        self.evaluate.pictured = min(loop["pictured"], self.evaluate.due(self.step))  # fewer, if it goes on for longer
        seeding.set_global_states(loop["generators"], self.device)


class Stopwatch:
    """Times training alone, without the evaluations between."""

    def __init__(self, step: int) -> None:
        self.restart(step)

    def restart(self, step: int) -> None:
        """Time from this step on."""
        self._step, self._start = step, time.perf_counter()

    def rate(self, step: int) -> float:
        """Steps per second since the last restart."""
        return (step - self._step) / max(time.perf_counter() - self._start, 1e-9)


def clip(rewards: Array, bound: float | None) -> Array:
    """The reward that is learned from: r_ext + r_int, clipped in the paper's suites, as it is elsewhere."""
    return rewards if bound is None else np.clip(rewards, -bound, bound)
