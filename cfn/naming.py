"""What runs are called: their folders, and the settings of which they are repetitions."""

import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

# Where, how long and how closely a run is watched changes nothing in it, and a seed is what repetitions differ in.
_NOT_A_SETTING = {"seed", "steps", "eval", "tracker", "outputs", "device", "threads", "hydra"}
# What a folder's name says already, or the folder's config says better.
_NOT_IN_FOLDERS = {"env", "agent", "bonus", "env.id", "experiment", "preset"}


def environment(choice: str, env_id: str | None) -> str:
    """What the environment is called: the option's name, or the id of an environment that `env=gym` took."""
    return re.sub(r"[^\w.-]", "-", env_id) if choice == "gym" and env_id else choice


def setting(choices: Mapping[str, Any], env_id: str | None, overrides: Iterable[str]) -> str:
    """A run's setting without its seed, in words: runs that share it are repetitions of each other."""
    label = f"{environment(choices['env'], env_id)}/{choices['agent']}-{choices['bonus']}"
    return _shortened(" ".join([label, *_kept(overrides, {"env", "agent", "bonus", "env.id"})]), 120)


def folder(
    outputs: str, choices: Mapping[str, Any], env_id: str | None, time: str, overrides: Iterable[str], seed: int
) -> Path:
    """<outputs>/<env>/<agent>-<bonus>/<date-time>/seed=<n>; the seeds of one setting sit side by side.

    Args:
        outputs: The folder of all runs.
        choices: Which option was chosen of each group.
        env_id: The id of an environment that `env=gym` takes.
        time: When the command was given.
        overrides: In a sweep, what was overridden: it is written after the time, to tell the settings apart.
        seed: The run's seed.
    """
    moment = ",".join([time, *_kept(overrides, _NOT_IN_FOLDERS)]).replace("/", "-")
    pair = f"{choices['agent']}-{choices['bonus']}"
    return Path(outputs) / environment(choices["env"], env_id) / pair / _shortened(moment, 150) / f"seed={seed}"


def _kept(overrides: Iterable[str], excluded: set[str]) -> list[str]:
    """The overrides that say something of the setting, in the order of their keys."""
    kept = []
    for override in sorted(o.lstrip("+~") for o in overrides):
        key = override.partition("=")[0].partition("@")[0]
        if key not in excluded and re.split("[./]", key)[0] not in _NOT_A_SETTING:
            kept.append(override)
    return kept


def _shortened(name: str, limit: int) -> str:
    """Without characters that shells and file systems mind; a name over the limit ends in a checksum instead."""
    name = re.sub(r"[^\w.=,/ +-]", "-", name)
    return name if len(name) <= limit else f"{name[: limit - 9]}-{zlib.crc32(name.encode()):08x}"
