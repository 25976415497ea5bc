"""Which runs an experiment consists of: its configs say so, and runs are held against them.

An experiment's YAML names its environment, agent and bonus and the keys that it sweeps; each preset adds to them. Every
combination but for the seed is a cell, and a figure is complete when every cell has a run of every seed.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from cfn.analysis.files import read_yaml
from cfn.analysis.groups import Group, group
from cfn.analysis.runs import Record
from cfn.errors import UsageError

Cell = dict[str, str]
"""Keys and values, as a command line would have them."""

PRESETS = ("paper", "mini")
_MOST_CELLS = 8
"""Of those that something is missing of, the first that are named."""


class Members(NamedTuple):
    """The runs of an experiment, in its order; its tasks, also those without a run; sentences on what is missing."""

    groups: list[Group]
    tasks: list[str]
    problems: list[str]


class Plan(NamedTuple):
    """What an experiment consists of: its cells, each for so many seeds."""

    cells: list[Cell]
    seeds: int


def plan(conf: Path, name: str, preset: str) -> Plan:
    """What an experiment consists of.

    Args:
        conf: The folder of the configs.
        name: The experiment's.
        preset: The preset's.
    """
    choices: dict[str, Any] = {}
    swept: dict[str, Any] = {}
    for path in (conf / "experiment" / f"{name}.yaml", conf / "preset" / preset / f"{name}.yaml"):
        content = read_yaml(path)
        for entry in content.get("defaults", []):
            if isinstance(entry, dict):
                choices |= {key.removeprefix("override /"): value for key, value in entry.items()}
        swept |= content.get("hydra", {}).get("sweeper", {}).get("params", {})
    seeds = re.fullmatch(r"range\((\d+)\)", str(swept.pop("seed", "")))
    values = {key: str(value).split(",") for key, value in (choices | swept).items()}
    combinations = itertools.product(*values.values())
    cells = [dict(zip(values, combination, strict=True)) for combination in combinations]
    return Plan(cells, int(seeds[1]) if seeds else 1)


def members(records: Sequence[Record], name: str, conf: Path) -> Members:
    """Those of the runs that belong to an experiment, grouped and in its order.

    They are the runs that were begun as the experiment's or, if there are none, those that were begun as no
    experiment's and have the values of one of its cells. Presets are not mixed: the one with more runs counts.
    """
    begun = [record for record in records if f"experiment={name}" in record.overrides]
    free = [record for record in records if not any(o.startswith("experiment=") for o in record.overrides)]
    of_preset: dict[str, list[Record]] = {}
    for preset in PRESETS:
        if begun:
            of_preset[preset] = [record for record in begun if _preset(record) == preset]
        else:
            cells = plan(conf, name, preset).cells
            of_preset[preset] = [record for record in free if any(_is_of(record, cell) for cell in cells)]
    preset = max(PRESETS, key=lambda preset: len(of_preset[preset]))
    chosen = of_preset[preset]
    if not chosen:
        raise UsageError(f"none of the {len(records)} runs belongs to {name}: cfn train experiment={name} makes them")
    problems = []
    if begun and len(begun) > len(chosen):
        others = len(begun) - len(chosen)
        problems.append(f"left out: {others} runs of {name} with another preset than {preset}; draw them on their own")
    expected = plan(conf, name, preset)
    groups, repeated = group(chosen)
    places = {id(one): _place(one.first, expected.cells) for one in groups}
    groups.sort(key=lambda one: places[id(one)])
    in_cell = [[one for one in groups if places[id(one)] == i] for i in range(len(expected.cells))]
    tasks = [here[0].task if here else _task(cell) for here, cell in zip(in_cell, expected.cells, strict=True)]
    problems += [f"{name} (preset={preset}) has {lack}" for lack in _missing(expected, in_cell)]
    return Members(groups, list(dict.fromkeys([*tasks, *(one.task for one in groups)])), [*problems, *repeated])


def _missing(expected: Plan, in_cell: Sequence[Sequence[Group]]) -> list[str]:
    """What an experiment lacks, in words: cells without a run, and seeds of the others."""
    cells = expected.cells
    constant = {key for key in cells[0] if len({cell[key] for cell in cells}) == 1}
    lacking: dict[str, list[str]] = {}
    for cell, here in zip(cells, in_cell, strict=True):
        seeds = {run.seed for one in here for run in one.runs}
        absent = [seed for seed in range(expected.seeds) if seed not in seeds]
        if absent:
            what = f"no seed {_listed(absent)} of" if here else "no run of"
            lacking.setdefault(what, []).append(" ".join(f"{k}={v}" for k, v in cell.items() if k not in constant))
    return [f"{what}: {_first_few(told)}" for what, told in lacking.items()]


def _first_few(told: Sequence[str]) -> str:
    more = f"; and {len(told) - _MOST_CELLS} more" if len(told) > _MOST_CELLS else ""
    return "; ".join(told[:_MOST_CELLS]) + more


def _listed(numbers: Sequence[int]) -> str:
    """Numbers in words, three or more that follow each other as a range."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _preset(record: Record) -> str:
    said = [o.partition("=")[2] for o in record.overrides if o.startswith("preset=")]
    return said[-1] if said else PRESETS[0]


def _place(record: Record, cells: Iterable[Cell]) -> int:
    """Which cell a run belongs to; beyond the last if it is of none."""
    fitting = [_fits(record, cell) for cell in cells]
    return fitting.index(True) if True in fitting else len(fitting)


def _fits(record: Record, cell: Cell) -> bool:
    return all(_value(record, key) == yaml.safe_load(value) for key, value in cell.items())


def _is_of(record: Record, cell: Cell) -> bool:
    """Whether a run that was begun by itself could be the experiment's: an environment of another kind could not."""
    other = {key for key in record.named if key.startswith("env.")} - cell.keys() - {"env.on_error"}
    return _fits(record, cell) and not other


def _value(record: Record, key: str) -> Any:
    """A run's value for a cell's key: of what a suite says of an agent or bonus, that which they were made with."""
    suite, _, rest = key.partition(".")
    owner, _, name = rest.partition(".")
    if suite == "suite" and owner in (record.agent, record.bonus):
        return record.value(f"{'bonus' if owner == record.bonus else 'agent'}.{name}")
    return record.value(key)


def _task(cell: Cell) -> str:
    return " ".join(cell[key] for key in ("env", "env.mode") if key in cell)
