"""The training loop: Algorithm 1 of the paper, for any agent, any bonus and any environment."""

import contextlib
import gc
import inspect
import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import numpy as np

from cfn import seeding
from cfn.agents.base import Agent
from cfn.bonuses.base import Bonus
from cfn.bonuses.visits import Visits
from cfn.checkpoints.stateful import Stateful, without_state
from cfn.config import Config
from cfn.envs import making
from cfn.envs.batch import BrokenEnvError, EnvBatch
from cfn.envs.notices import log_warnings_of_gymnasium
from cfn.envs.stack import newest, newest_space
from cfn.errors import UsageError
from cfn.nn import compiling, device, memory_limits
from cfn.replay.frames import FrameStore
from cfn.runs.folder import Run
from cfn.tracking.base import Guarded, Tracker, Trackers
from cfn.tracking.console import Console
from cfn.tracking.metrics_file import MetricsFile
from cfn.tracking.statistics import EpisodeStatistics, Means, finite
from cfn.training.autosave import Autosave
from cfn.training.clock import Stopwatch
from cfn.training.evaluation import Evaluation, EvaluationInterruptedError
from cfn.training.signals import PrunedError, StopRequest
from cfn.training.visit_counts import VisitCounts
from cfn.types import Array

log = logging.getLogger(__name__)

ExtraTracker = Callable[[Run, Tracker], Tracker]
"""Makes a tracker from the run and the trackers that its results are passed on to."""


class Training:
    """All parts of a run. The constructor checks that they fit together, and writes nothing.

    Args:
        config: Config of the run.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        log_warnings_of_gymnasium()  # also in the worker processes of a sweep
        self.device = device.choose(config.device)
        device.limit_threads(config.threads)
        seeding.seed_everything(config.seed)
        self.step = self._previous_step = 0
        self._resumed_at: int | None = None
        self.seconds = 0.0
        self.stop = StopRequest()
        self.make_env = partial(making.make, config.env, config.frame_stack, seeding.integer(config.seed, "env"))
        self.envs = EnvBatch(self.make_env, config.num_envs, config.seed, self._on_fault, config.env_workers)
        with contextlib.ExitStack() as opened:  # closed if this fails: a sweep may keep the error to its end
            opened.callback(self.envs.close)
            self._make_parts(config)
            opened.callback(self.evaluate.close)
            self.close = opened.pop_all().close
            """Close the environments; more than one call has no effect."""

    def _make_parts(self, config: Config) -> None:
        """Make what depends on the spaces of the environments."""
        frame_space = newest_space(self.envs.observation_space, config.frame_stack)
        self.frames = frames = FrameStore(frame_space.shape or (), frame_space.dtype)  # shared by agent and bonus
        self.agent = config.agent.make(
            Agent,  # type: ignore[type-abstract]
            observation_space=self.envs.observation_space,
            action_space=self.envs.action_space,
            frame_stack=config.frame_stack,
            num_envs=config.num_envs,
            steps=config.steps,
            frames=frames,
            device=self.device,
            seed=seeding.integer(config.seed, "agent"),
        )
        self.bonus = config.bonus.make(
            Bonus,  # type: ignore[type-abstract]
            observation_space=frame_space,
            action_space=self.envs.action_space,
            num_envs=config.num_envs,
            steps=config.steps,
            frames=frames,
            device=self.device,
            seed=seeding.integer(config.seed, "bonus"),
        )
        memory_limits.require_together(
            {"agent.capacity": self.agent.full_bytes, "bonus.capacity": self.bonus.full_bytes}
        )
        if config.bf16:
            device.use_bf16((*self.agent.networks, *self.bonus.networks), self.device)
        if config.compile:
            compiling.require_compiler(self.device)
            self.agent.compile()
            self.bonus.compile()
        self.visit_counts = VisitCounts(frame_space, self.envs.state_names, self.bonus.counts_actions)
        self.evaluate = Evaluation(config, self.agent, self.bonus, self.visit_counts, self.make_env, self.stop)
        self.episodes, self.means = EpisodeStatistics(config.num_envs), Means()
        observations, states = self.envs.begin_episodes()
        asked = None if self.bonus.counts_actions else states
        self.bonus.novelty(newest(observations, config.frame_stack), asked)  # raises if it cannot handle them

    def loop(self, run: Run, tracker: Tracker, save: Callable[["Training"], None]) -> None:
        """Run Algorithm 1 to the last step, or until `stop` has a reason. Steps are summed over environments."""
        config, envs, agent, bonus = self.config, self.envs, self.agent, self.bonus
        episodes, means, stopwatch = self.episodes, self.means, Stopwatch(self.step)
        while self.step < config.steps and self.stop.reason is None:
            resumed = self.step == self._resumed_at
            evaluates_next = self._evaluates(self.step, self.step + config.num_envs)
            due = evaluates_next and self.evaluate.prepare(resumed, stopwatch.seconds_per_step(self.step))
            if due or self.times_due(config.checkpoint.every):
                save(self)
            observations, states = envs.begin_episodes()
            actions = agent.act(observations)
            next_observations, next_states, rewards, terminated, truncated = envs.step(actions)

            frames = newest(observations, config.frame_stack)
            next_frames = newest(next_observations, config.frame_stack)
            visits = Visits(states, actions, next_frames, envs.begins, terminated, truncated, next_states)
            bonuses = bonus.observe(frames, visits)
            learned_rewards = clip(clip(rewards, config.extrinsic_clip) + bonuses, config.reward_clip)
            agent.observe(observations, actions, learned_rewards, next_observations, terminated, truncated)
            self.visit_counts.visit(visits.pairs if bonus.counts_actions else states, frames)
            self.visit_counts.arrive(None if bonus.counts_actions else next_states, next_frames)
            self._previous_step, self.step = self.step, self.step + config.num_envs

            for _ in range(self.times_due(agent.update_period)):
                means.add(finite(self.step, agent.update()))
            for _ in range(self.times_due(bonus.update_period)):
                means.add(finite(self.step, bonus.update()))

            tracker.tick(self.step)
            row = episodes.add(rewards, bonuses, terminated | truncated) | envs.episode_metrics
            if evaluating := self._evaluates(self._previous_step, self.step):
                row |= {"speed/steps_per_second": stopwatch.rate(self.step)}
                row |= self.evaluate(self.step, run.files, tracker)
                row |= {"train/failures": failures} if (failures := envs.failures) else {}
            if row:
                tracker.log(self.step, finite(self.step, row | means.take()))
            if evaluating:
                tracker.evaluated(self.step, self.visit_counts.rooms)
                stopwatch.restart(self.step)

    def times_due(self, period: int | None) -> int:
        """Return how many periods the last steps have completed; None: never."""
        return self.step // period - self._previous_step // period if period else 0

    def _evaluates(self, before: int, after: int) -> bool:
        """Return whether the steps from `before` to `after` end with an evaluation; the last ones of a run do."""
        every = self.config.eval.every
        return every is not None and (after // every > before // every or after >= self.config.steps)

    def run(self, run: Run, add_tracker: ExtraTracker | None = None) -> None:
        """Train to the end and write the summary, however the run ends.

        Args:
            run: Run to write.
            add_tracker: Maker of a further tracker, such as the one that draws pictures.
        """
        metrics = MetricsFile(run)
        mirror = Guarded(self.config.tracker.build(run=run))
        tracker: Tracker = Trackers([metrics, mirror, Console(run, self.step)])
        if add_tracker is not None:
            tracker = Trackers([add_tracker(run, tracker), tracker])
        started = time.monotonic() - self.seconds
        save = Autosave(self.config.checkpoint, run, metrics, started)
        state, error = "failed", None
        log.info(f"{run.setting}, seed {run.seed}: {self.config.steps:,} steps on {self.device}, in {run.shown}")
        memory_limits.announce(self.agent.full_bytes + self.bonus.full_bytes)
        self._warn_of_missing_states()
        self._announce_step_limit(run)
        if self.envs.observation_note:
            log.info(self.envs.observation_note)
        with self.stop:  # to the end: a signal that follows the first must not cut short the summary either
            try:
                run.write_summary("running", self.step, self.seconds, metrics.latest)
                if not self._loop_and_save(run, tracker, save):
                    self._raise_stop_reason(run)
                state = "finished"
            except KeyboardInterrupt:
                state = "stopped"
                raise
            except PrunedError:
                state = "pruned"
                raise
            except Exception as exception:
                error = f"{type(exception).__name__}: {exception}"
                log.exception(f"failed at step {self.step:,}")
                raise
            finally:
                # On a full disk these calls fail, too: the error in flight is the one to report.
                hidden = () if state == "finished" else (Exception,)
                try:
                    with contextlib.suppress(*hidden):
                        tracker.finish(failed=state == "failed")
                finally:
                    with contextlib.suppress(*hidden):
                        run.write_summary(state, self.step, time.monotonic() - started, metrics.latest, error)
                    self.close()
                    log.info(f"{state} after {time.monotonic() - started:,.0f} s: {run.shown}")
        if self.stop.signal is not None:  # it came after the last step: the run is finished, a sweep stops here
            raise self.stop.signal

    def _loop_and_save(self, run: Run, tracker: Tracker, save: Callable[["Training"], None]) -> bool:
        """Run the loop and write the last checkpoint; return whether the run is complete."""
        try:
            with _long_lived_objects():
                self.loop(run, tracker, save)
        except (BrokenEnvError, PrunedError) as reason:  # no episode could begin, or a tracker ends the run
            self.stop(reason)
        except EvaluationInterruptedError:
            return False  # the checkpoint before the evaluation stays the last one, so a resumed run repeats it
        save(self)
        return self.step >= self.config.steps

    def _on_fault(self, fault: BrokenEnvError) -> None:
        if self.config.on_error == "stop":
            self.stop(fault)

    def _raise_stop_reason(self, run: Run) -> NoReturn:
        assert self.stop.reason is not None, "only a reason ends the loop early"
        hint = f": cfn resume {run.shown} continues from here" if self.config.checkpoint.every else ""
        if isinstance(self.stop.reason, BrokenEnvError):
            recreated = ", with a new instance of that environment" if hint else ""
            raise UsageError(f"{self.stop.reason}{hint}{recreated}") from self.stop.reason
        log.info(f"{self.stop.reason} at step {self.step:,}{hint}")
        raise self.stop.reason

    def _announce_step_limit(self, run: Run) -> None:
        limited = self.evaluate.step_limit or self.envs.step_limit or self.config.eval.max_steps
        if not limited and self.config.eval.every:
            training = " Training episodes may never end: env.max_steps limits them." if self._limitable else ""
            limit = f"evaluation episodes end after {self.evaluate.max_steps:,} steps (eval.max_steps)"
            log.info(f"{run.env} has no step limit: {limit}.{training}")

    @property
    def _limitable(self) -> bool:
        return "max_steps" in inspect.signature(self.config.env.target).parameters

    def _warn_of_missing_states(self) -> None:
        for part, base in ((self.agent, Agent), (self.bonus, Bonus)):
            if self.config.checkpoint.every and (name := without_state(part, base)):
                log.warning(f"{name} has no state_dict: a resumed run will start it untrained.")

    def state_dict(self) -> dict[str, Any]:
        finite(self.step, self.means.look())  # losses that are still on a device were not checked yet
        return {
            "loop": {
                "step": self.step,
                "episodes": self.episodes.state_dict(),
                "means": self.means.state_dict(),
                "generators": seeding.global_states(self.device),
            },
            "envs": self.envs.state_dict(),
            "frames": self.frames.state_dict(),
            "agent": self.agent.state_dict(),
            "bonus": self.bonus.state_dict(),
            "truth": self.visit_counts.state_dict(),
        }

    def load_learned(self, read: Callable[[str], Any]) -> None:
        """Restore the agent and the bonus, to play; `read` returns the state of one part."""
        self.agent.load_state_dict(read("agent"))
        self.bonus.load_state_dict(read("bonus"))

    def load(self, read: Callable[[str], Any]) -> None:
        """Restore all parts; `read` returns the state of one part, so that only one is in memory at a time."""
        parts: dict[str, Stateful] = {
            "frames": self.frames,
            "agent": self.agent,
            "bonus": self.bonus,
            "truth": self.visit_counts,
            "envs": self.envs,
        }
        for name, part in parts.items():
            part.load_state_dict(read(name))
        loop = read("loop")
        self.episodes.load_state_dict(loop["episodes"])
        self.episodes.drop(self.envs.lost)
        self.agent.cut(self.envs.lost)
        self.means.load_state_dict(loop["means"])
        self.step = self._previous_step = self._resumed_at = loop["step"]
        self.stop.reason = None  # an environment that failed in the constructor's reset has been replaced
        seeding.set_global_states(loop["generators"], self.device)


@contextlib.contextmanager
def _long_lived_objects() -> Iterator[None]:
    """Keep the garbage collector from looking at modules and networks again and again: 3% of a small run's time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def clip(rewards: Array, bound: float | None) -> Array:
    """Clip rewards to [-bound, bound]; None: no clipping."""
    return rewards if bound is None else np.clip(rewards, -bound, bound)
