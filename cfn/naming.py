"""Names of runs: their folders, and the settings that seeds repeat."""

import re
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

NOT_A_SETTING = {
    "seed", "steps", "eval", "checkpoint", "tracker", "outputs", "device", "threads", "compile", "hydra", "pictures",
    "objective", "env_workers",
}  # fmt: skip
"""Keys and groups that do not distinguish settings: they do not affect learning, or repetitions differ in them."""
KEY_IN_NAME = {"gym": "id", "minigrid": "id", "atari": "game"}
"""Key of an environment that is part of its name, by option: these options stand for many environments."""

_SETTING_LENGTH = 120
"""Letters in the name of a setting: W&B rejects groups with names longer than 128."""
_FOLDER_LENGTH = 150
"""Letters in the name of a folder: most file systems allow 255 bytes."""


def environment(choice: str, keys: Mapping[str, Any]) -> str:
    """Return the name of an environment: the chosen option, `atari-<game>`, `minigrid-<id>`, or the Gymnasium id.

    Args:
        choice: Option chosen in the group `env`.
        keys: Config keys of the environment.
    """
    value = keys.get(KEY_IN_NAME.get(choice, ""))
    if not value:
        return choice
    return re.sub(r"[^\w.-]", "-", str(value) if choice == "gym" else f"{choice}-{value}")


def part_key(key: str) -> str:
    """Return `bonus.novelty` for `bonus@bonus.novelty`, the name that Hydra has for the choice of a part."""
    group, at, package = key.partition("@")
    return package if at and package.startswith(f"{group}.") else key


def setting(choices: Mapping[str, Any], env: Mapping[str, Any], overrides: Iterable[str]) -> str:
    """Return the name of a run's setting; runs that share it differ only in their seeds.

    In a long name, a key that begins with a dot is in the group of the key before it. If the name is still too long,
    it has the number of the keys that are left out, and a checksum of them all.

    Args:
        choices: Option chosen in each group.
        env: Config keys of the environment.
        overrides: Overrides of the command line.
    """
    kept = []
    for override in sorted(part_key(o.lstrip("+~")) for o in overrides):
        key = override.partition("=")[0].partition("@")[0]
        if key not in _in_every_folder(choices) and re.split("[./]", key)[0] not in NOT_A_SETTING:
            kept.append(override)
    label = f"{environment(str(choices['env']), env)}/{choices['agent']}-{choices['bonus']}"
    return _joined(label, kept, " ", "and {} more key{} ({})", _SETTING_LENGTH)


def folder(choices: Mapping[str, Any], env: Mapping[str, Any], time: str, swept: str, seed: Any) -> Path:
    """Return <env>/<agent>-<bonus>/<date-time>/seed=<n>; the seeds of one setting are side by side.

    Args:
        choices: Option chosen in each group.
        env: Config keys of the environment.
        time: Start of the command.
        swept: Values of the swept keys in this run of a sweep, as `key=value,...`; they follow the time.
        seed: Seed of the run.
    """
    pairs = [part_key(pair).replace("/", "-") for pair in re.split(r",(?=[\w.+/@~]+=)", swept) if pair]
    pairs = [pair for pair in pairs if pair.partition("=")[0] not in _in_every_folder(choices)]
    moment = _joined(time.replace("/", "-"), pairs, ",", "and-{}-more-key{}-{}", _FOLDER_LENGTH)
    seed = int(seed) if isinstance(seed, float) and seed.is_integer() else seed
    pair = f"{choices['agent']}-{choices['bonus']}"
    return Path(environment(str(choices["env"]), env), pair, moment, f"seed={seed}")


def unused(root: Path, folder: Path, taken: Collection[Path] = ()) -> Path:
    """Return the folder, with a number added if it exists already (two runs may start in the same second).

    Args:
        root: Parent of all runs.
        folder: Folder below it.
        taken: Further folders, with the root, that other runs are going to use.
    """
    number, path = 1, folder
    while (root / path).exists() or root / path in taken:
        number += 1
        path = folder.parent.with_name(f"{folder.parent.name}-{number}") / folder.name
    return path


def _in_every_folder(choices: Mapping[str, Any]) -> set[str]:
    """Return the keys that the path of every run folder contains."""
    return {"env", "agent", "bonus", "seed", f"env.{KEY_IN_NAME.get(str(choices['env']))}"}


def _joined(start: str, pairs: Sequence[str], separator: str, rest: str, limit: int) -> str:
    """Return a name of at most `limit` letters; different pairs have different names.

    Args:
        start: First part of the name.
        pairs: Further parts, as `key=value`.
        separator: Text between parts.
        rest: Last part of a name that lacks some pairs: formatted with their number, a plural s and a checksum.
        limit: Largest number of letters.
    """
    for parts in (pairs, _without_repeated_groups(pairs)):
        name = safe(separator.join([start, *parts]))
        if len(name) <= limit:
            return name
    start, checksum = start[: limit // 2], f"{zlib.crc32(separator.join([start, *pairs]).encode()):08x}"

    def with_some(kept: Sequence[str]) -> str:
        left_out = len(pairs) - len(kept)
        last = rest.format(left_out, "s" * (left_out != 1), checksum)
        return separator.join([safe(separator.join([start, *_without_repeated_groups(kept)])), last])

    kept: list[str] = []
    for pair in pairs:
        kept += [pair] if len(with_some([*kept, pair])) <= limit else []
    return with_some(kept)


def _without_repeated_groups(pairs: Sequence[str]) -> list[str]:
    """Return `bonus.a=1`, `bonus.b=2` as `bonus.a=1`, `.b=2`: a group is named only where it begins."""
    shown, before = [], ""
    for pair in pairs:
        key, equals, value = pair.partition("=")
        group = key.rpartition(".")[0]
        shown.append(f"{key.removeprefix(group) if group == before else key}{equals}{value}")
        before = group
    return shown


def safe(text: str) -> str:
    """Return a text without special characters of shells and file systems."""
    return re.sub(r"[^\w.=,/ +-]", "-", text)
