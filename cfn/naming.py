"""What runs are called: their folders, and the settings of which they are repetitions."""

import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

# Where, how long and how closely a run is watched changes nothing in it, and a seed is what repetitions differ in.
NOT_A_SETTING = {"seed", "steps", "eval", "checkpoint", "tracker", "outputs", "device", "threads", "compile", "hydra"}
# Every folder's path says these.
_IN_EVERY_FOLDER = {"env", "agent", "bonus", "env.id", "seed"}


def environment(choice: str, env_id: str | None) -> str:
    """What the environment is called: the option's name, or the id of an environment that `env=gym` took."""
    return re.sub(r"[^\w.-]", "-", str(env_id)) if choice == "gym" and env_id else choice


def setting(choices: Mapping[str, Any], env_id: str | None, overrides: Iterable[str]) -> str:
    """A run's setting without its seed, in words: runs that share it are repetitions of each other."""
    label = f"{environment(choices['env'], env_id)}/{choices['agent']}-{choices['bonus']}"
    return _shortened(" ".join([label, *_kept(overrides, _IN_EVERY_FOLDER)]), 120)


def folder(choices: Mapping[str, Any], env_id: str | None, time: str, swept: str, seed: Any) -> Path:
    """<env>/<agent>-<bonus>/<date-time>/seed=<n>; the seeds of one setting sit side by side.

    Args:
        choices: Which option was chosen of each group.
        env_id: The id of an environment that `env=gym` takes.
        time: When the command was given.
        swept: In a sweep, this run's values of the keys that are swept, `key=value,...`: they follow the time.
        seed: The run's seed.
    """
    values = [
        value for value in re.split(r",(?=[\w.+/@~]+=)", swept) if value.partition("=")[0] not in _IN_EVERY_FOLDER
    ]
    moment = ",".join([time, *filter(None, values)]).replace("/", "-")
    seed = int(seed) if isinstance(seed, float) and seed.is_integer() else seed
    pair = f"{choices['agent']}-{choices['bonus']}"
    return Path(environment(str(choices["env"]), env_id), pair, _shortened(moment, 150), f"seed={seed}")


def unused(root: Path, folder: Path) -> Path:
    """The folder, or if there is one of that name (of a run begun in the same second), one that counts on."""
    number, path = 1, folder
    while (root / path).exists():
        number += 1
        path = folder.parent.with_name(f"{folder.parent.name}-{number}") / folder.name
    return path


def _kept(overrides: Iterable[str], excluded: set[str]) -> list[str]:
    """The overrides that say something of the setting, in the order of their keys."""
    kept = []
    for override in sorted(o.lstrip("+~") for o in overrides):
        key = override.partition("=")[0].partition("@")[0]
        if key not in excluded and re.split("[./]", key)[0] not in NOT_A_SETTING:
            kept.append(override)
    return kept


def _shortened(name: str, limit: int) -> str:
    """Without characters that shells and file systems mind; a name over the limit ends in a checksum instead."""
    name = re.sub(r"[^\w.=,/ +-]", "-", name)
    return name if len(name) <= limit else f"{name[: limit - 9]}-{zlib.crc32(name.encode()):08x}"
