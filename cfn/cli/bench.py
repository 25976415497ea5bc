"""`cfn bench`: measure the cost of a run on this machine, and suggest changes."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cfn.cli.arguments import Parser
from cfn.config import CONF, Config, check
from cfn.launch.composed import with_agent, without_hydra
from cfn.launch.parts import choosing_parts

if TYPE_CHECKING:
    from cfn.training.benchmark import Benchmark

LARGE_SHARE = 0.35
"""Share of a step's time above which a part is worth changing."""
LONG_STEP = 1.0
"""Milliseconds of a step of all environments above which several processes gain more time than messages take."""


def run(arguments: list[str]) -> None:
    """Run `cfn bench`."""
    parser = Parser("bench", "Measure the cost of a run on this machine: time by part, memory, time to its end.")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="groups and keys, as in cfn train")
    parser.add_argument("--seconds", type=_positive_seconds, default=60.0, help="length of the measurement (60)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--config-dir", metavar="DIR", help="folder of your own configs")
    options = parser.parse_intermixed_args(arguments)
    config = _composed(options.overrides, options.config_dir)
    from cfn.training.benchmark import benchmark  # PyTorch is slow to import

    found = benchmark(config, options.seconds)
    command = " ".join(["cfn", "bench", *options.overrides])
    if options.json:
        print(json.dumps({"command": command, **found._asdict()}, indent=1))
    else:
        print(_table(command, config, found))


def _positive_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return seconds


def _composed(overrides: Sequence[str], config_dir: str | None) -> Config:
    from hydra.types import RunMode  # slow to import, and `cfn bench --help` does not need it

    from cfn.launch.config_loader import config_loader

    words = choosing_parts(overrides, [CONF, *([Path(config_dir)] if config_dir else [])])
    composed = config_loader(config_dir).load_configuration("config", words, RunMode.RUN)
    return check(*with_agent(without_hydra(composed), composed.hydra.runtime.choices))


def _table(command: str, config: Config, found: "Benchmark") -> str:
    total = sum(found.milliseconds.values())
    rows = sorted(found.milliseconds.items(), key=lambda item: -item[1])
    machine = found.machine
    cores = f"{machine['cores']} cores, {machine['threads']} threads of PyTorch"
    evaluations = f"{found.evaluations:,} evaluations of at most {found.evaluation_seconds:,.1f} s"
    return "\n".join(
        [
            f"{command}: {found.measured_steps:,} steps measured on {machine['device']}",
            f"{machine['processor']}, {cores}; torch {machine['torch']}, Python {machine['python']}",
            "",
            f"{'part of a step':<20}{'ms':>10}{'share':>8}",
            *(f"{part:<20}{ms:>10.3f}{ms / total:>8.0%}" for part, ms in rows),
            "",
            f"{found.steps_per_second:,.1f} steps per second while learning; {evaluations}",
            f"memory: {found.process_bytes / 2**30:.1f} GiB now, and up to {found.buffer_bytes / 2**30:.1f} GiB more "
            "with full replay buffers",
            f"estimated time of {config.steps:,} steps: {_duration(found.hours)}",
            *(f"try: {sentence}" for sentence in advice(config, found)),
        ]
    )


def _duration(hours: float) -> str:
    if hours < 1:
        return f"{hours * 60:.0f} minutes"
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"


def advice(config: Config, found: "Benchmark") -> list[str]:
    """Return suggestions that make a run faster.

    Args:
        config: Config of the run.
        found: Its cost.
    """
    total = sum(found.milliseconds.values())
    share = {part: ms / total for part, ms in found.milliseconds.items()}
    learning = share["agent update"] + share["bonus update"]
    on_gpu, cores, sentences = found.machine["device"] != "cpu", found.machine["cores"], []
    if learning > LARGE_SHARE and not config.compile:
        sentences.append("compile=true: updates are most of the time, and it compiles them")
    if learning > LARGE_SHARE and on_gpu and not config.bf16:
        sentences.append("bf16=true: forward passes in bfloat16")
    if share["acting"] + share["bonus of a visit"] > LARGE_SHARE and config.num_envs == 1:
        sentences.append("num_envs=8: acting and bonuses of several environments are computed together")
    stepping, processes = found.milliseconds["environment"] * config.num_envs, min(cores, config.num_envs)
    if share["environment"] > LARGE_SHARE and stepping > LONG_STEP and config.env_workers < processes:
        sentences.append(f"env_workers={processes}: environments are most of the time, and more cores could step them")
    if not on_gpu and found.machine["threads"] < cores and learning > LARGE_SHARE:
        sentences.append(f"threads={cores}: PyTorch uses {found.machine['threads']} of the cores")
    if found.evaluations * found.evaluation_seconds > LARGE_SHARE * found.hours * 3600:
        sentences.append("a larger eval.every: evaluations are a large part of the run")
    return sentences
