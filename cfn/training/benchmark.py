"""`cfn bench`: cost of a run on this machine, by part, measured in the training loop while it learns."""

import dataclasses
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch

from cfn import __version__
from cfn.config import Config
from cfn.runs.folder import Run
from cfn.tracking.metrics_file import MetricsFile
from cfn.training.clock import Clock
from cfn.training.evaluation import play_episodes
from cfn.training.loop import Training

PARTS = ("environment", "acting", "agent update", "bonus update", "bonus of a visit", "replay", "logging", "the loop")
"""Parts of a training step."""
MIN_SIZE = 1_000
"""Largest `min_size`, in visits: a run that begins to learn later is measured as if it began here."""
CHUNK = 50
"""Environment steps between two readings of the clock."""
EVALUATION_STEPS = 200
"""Steps of the evaluation that is timed."""


class Benchmark(NamedTuple):
    """Cost of a run on this machine.

    Attributes:
        milliseconds: Milliseconds per environment step, by part (`PARTS`).
        steps_per_second: Environment steps per second while learning, without evaluations.
        evaluation_seconds: Seconds of one evaluation of the config's length.
        evaluations: Number of evaluations of the run.
        buffer_bytes: Bytes of the full replay buffers.
        process_bytes: Resident bytes of the process after the measurement, with nearly empty buffers.
        hours: Estimated hours of the whole run.
        measured_steps: Environment steps that were measured.
        machine: Processor, device and versions.
    """

    milliseconds: dict[str, float]
    steps_per_second: float
    evaluation_seconds: float
    evaluations: int
    buffer_bytes: int
    process_bytes: int
    hours: float
    measured_steps: int
    machine: dict[str, Any]


def benchmark(config: Config, seconds: float) -> Benchmark:
    """Measure a run for some seconds, after it has begun to learn.

    Args:
        config: Config of the run.
        seconds: Seconds of the measurement, without preparation.
    """
    training = Training(_learning_early(config))
    clock = _watched(training)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder), config.env.name, config.agent.name, config.bonus.name, config.seed, "bench", {})
        metrics = MetricsFile(run)
        clock.watch("logging", metrics, "log")

        def advance(steps: int) -> None:
            training.config = dataclasses.replace(training.config, steps=training.step + steps)
            training.loop(run, metrics, save=lambda _: None)
            if (reason := training.stop.reason) is not None:
                raise reason

        advance(MIN_SIZE + 2 * CHUNK)  # fills the buffers, compiles, and warms up
        clock.seconds.clear()
        first, start = training.step, time.perf_counter()
        while time.perf_counter() - start < seconds:
            advance(CHUNK * config.num_envs)
        steps, total = training.step - first, time.perf_counter() - start
        evaluation = _seconds_per_evaluation_step(training) * _evaluation_steps(training)
    training.close()
    evaluations = config.steps // config.eval.every if config.eval.every else 0
    rate = steps / total
    return Benchmark(
        milliseconds={part: clock.seconds.get(part, 0.0) * 1000 / steps for part in PARTS},
        steps_per_second=rate,
        evaluation_seconds=evaluation,
        evaluations=evaluations,
        buffer_bytes=training.agent.full_bytes + training.bonus.full_bytes,
        process_bytes=_resident_bytes(),
        hours=(config.steps / rate + evaluations * evaluation) / 3600,
        measured_steps=steps,
        machine=_machine(training),
    )


def _learning_early(config: Config) -> Config:
    """Return the config with learning from `MIN_SIZE` on, greedy actions, and no evaluations."""
    agent, bonus = (
        dataclasses.replace(
            part,
            keys=part.keys
            | ({"min_size": min(part.keys["min_size"], MIN_SIZE)} if "min_size" in part.keys else {})
            | ({"epsilon_decay": 0} if "epsilon_decay" in part.keys else {}),
        )
        for part in (config.agent, config.bonus)
    )
    every = dataclasses.replace(config.eval, every=None)
    return dataclasses.replace(config, agent=agent, bonus=bonus, eval=every)


def _watched(training: Training) -> Clock:
    """Return a clock that measures the parts of a training."""
    clock, agent, bonus = Clock(), training.agent, training.bonus
    clock.watch("the loop", training, "loop")
    clock.watch("environment", training.envs, "begin_episodes", "step")
    clock.watch("acting", agent, "act")
    clock.watch("agent update", agent, "update")
    clock.watch("bonus update", bonus, "update")
    clock.watch("bonus of a visit", bonus, "observe")
    clock.watch("replay", agent, "observe")
    for learner in (agent, bonus):  # parts of our own learners; a user's learner may have none
        if (replay := getattr(learner, "_replay", None)) is not None:
            clock.watch("replay", replay, "sample", "update_priorities", "add")
    clock.watch("logging", training.visit_counts, "visit", "arrive")
    return clock


def _seconds_per_evaluation_step(training: Training) -> float:
    env = training.make_env()
    start = time.perf_counter()
    _, lengths = play_episodes(training.agent, [env], [0], EVALUATION_STEPS, lambda *_: None)
    env.close()
    return (time.perf_counter() - start) / sum(lengths)


def _evaluation_steps(training: Training) -> int:
    """Return the largest number of steps of an evaluation: all of its episodes have full length."""
    settings = training.config.eval
    return max(settings.steps, settings.episodes * training.evaluate.max_steps)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _machine(training: Training) -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    device = torch.cuda.get_device_name() if training.device.type == "cuda" else training.device.type
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": device,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cfn": __version__,
    }
