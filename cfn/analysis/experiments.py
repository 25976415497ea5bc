"""The runs of an experiment, found by comparing runs with the experiment's config.

The config names environment, agent, bonus and swept keys; a preset adds more. Every combination of values, without the
seed, is a cell. A figure is complete if every cell has a run of every seed. A search has no cells: the values it tries
depend on the environment (`suite.search`), and users choose environments and bonuses.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from cfn.analysis.grouping import Group, group
from cfn.errors import UsageError
from cfn.runs.reading import read_yaml
from cfn.runs.record import Record

Cell = dict[str, str]
"""Keys and values, as on a command line."""

PRESETS = ("paper", "small", "mini")
SEARCHES = ("scale_search",)
"""Experiments without cells."""
_MAX_LISTED_CELLS = 8
"""Incomplete cells that a sentence lists; the number of further ones follows."""


class Members(NamedTuple):
    """The runs of an experiment.

    Attributes:
        groups: Runs by setting, in the order of the experiment's cells.
        tasks: Tasks of the experiment, including those without runs.
        problems: Sentences on missing runs and on runs that are left out.
    """

    groups: list[Group]
    tasks: list[str]
    problems: list[str]


class Plan(NamedTuple):
    """Cells of an experiment, and the number of seeds of each; a search has none."""

    cells: list[Cell]
    seeds: int


def plan(conf: Path, name: str, preset: str) -> Plan:
    """Return the cells and seeds of an experiment.

    Args:
        conf: Folder of the configs.
        name: Name of the experiment.
        preset: Name of the preset.
    """
    if name in SEARCHES:
        return Plan([], 0)
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
    """Return the runs that belong to an experiment, grouped, in the order of its cells.

    These are the runs started with `experiment=<name>`. If there are none, they are the runs started without an
    experiment that have the values of a cell. Presets are not mixed: the preset with more runs is used.

    Args:
        records: Runs to choose from.
        name: Name of the experiment.
        conf: Folder of the configs.
    """
    started = [record for record in records if f"experiment={name}" in record.overrides]
    single = [record for record in records if not any(o.startswith("experiment=") for o in record.overrides)]
    of_preset: dict[str, list[Record]] = {}
    presets = [preset for preset in PRESETS if (conf / "preset" / preset / f"{name}.yaml").is_file()]
    for preset in presets:
        if started:
            of_preset[preset] = [record for record in started if _preset(record) == preset]
        else:
            cells = plan(conf, name, preset).cells
            of_preset[preset] = [record for record in single if any(_could_be_of(record, cell) for cell in cells)]
    preset = max(presets, key=lambda preset: len(of_preset[preset]))
    chosen = of_preset[preset]
    if not chosen:
        hint = f"create its runs with cfn train experiment={name}"
        raise UsageError(f"none of the {len(records)} runs belongs to {name}: {hint}")
    problems = []
    if started and len(started) > len(chosen):
        others = f"{len(started) - len(chosen)} runs of {name} with a preset other than {preset}"
        problems.append(f"left out: {others}; name their folders alone to draw them")
    expected = _as_started(plan(conf, name, preset), chosen)
    groups, repeated = group(chosen)
    cell_of = {id(one): _cell_number(one.first, expected.cells) for one in groups}
    groups.sort(key=lambda one: cell_of[id(one)])
    in_cell = [[one for one in groups if cell_of[id(one)] == i] for i in range(len(expected.cells))]
    tasks = [here[0].task if here else _task(cell) for here, cell in zip(in_cell, expected.cells, strict=True)]
    problems += [f"{name} (preset={preset}) has {missing}" for missing in _missing(expected, in_cell)]
    return Members(groups, list(dict.fromkeys([*tasks, *(one.task for one in groups)])), [*problems, *repeated])


def _as_started(expected: Plan, records: Sequence[Record]) -> Plan:
    """Return the plan with choices that all runs were started with instead of its own, such as `agent=random`."""
    cells, named = expected.cells, set.intersection(*({*record.overrides} for record in records))
    chosen = dict(override.split("=", 1) for override in named if "=" in override)
    changed = {key: value for key, value in chosen.items() if key in _constant(cells)}
    return expected._replace(cells=[cell | changed for cell in cells])


def _missing(expected: Plan, in_cell: Sequence[Sequence[Group]]) -> list[str]:
    """Return phrases on missing runs: cells without any run, and missing seeds of the other cells."""
    cells = expected.cells
    constant = _constant(cells)
    incomplete: dict[str, list[str]] = {}
    for cell, here in zip(cells, in_cell, strict=True):
        seeds = {run.seed for one in here for run in one.runs}
        absent = [seed for seed in range(expected.seeds) if seed not in seeds]
        if absent:
            lack = f"no seed {_listed(absent)} of" if here else "no run of"
            incomplete.setdefault(lack, []).append(" ".join(f"{k}={v}" for k, v in cell.items() if k not in constant))
    return [f"{lack}: {_first_few(names)}" for lack, names in incomplete.items()]


def _constant(cells: Sequence[Cell]) -> set[str]:
    """Return the keys that have the same value in all cells."""
    return {key for key in (cells[0] if cells else ()) if len({cell[key] for cell in cells}) == 1}


def _first_few(names: Sequence[str]) -> str:
    more = f"; and {len(names) - _MAX_LISTED_CELLS} more" if len(names) > _MAX_LISTED_CELLS else ""
    return "; ".join(names[:_MAX_LISTED_CELLS]) + more


def _listed(numbers: Sequence[int]) -> str:
    """Return numbers as text; three or more consecutive numbers as a range."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _preset(record: Record) -> str:
    presets = [o.partition("=")[2] for o in record.overrides if o.startswith("preset=")]
    return presets[-1] if presets else PRESETS[0]


def _cell_number(record: Record, cells: Iterable[Cell]) -> int:
    """Return the index of the cell that a run belongs to; the number of cells if it belongs to none."""
    fitting = [_fits(record, cell) for cell in cells]
    return fitting.index(True) if True in fitting else len(fitting)


def _fits(record: Record, cell: Cell) -> bool:
    return all(_value(record, key) == yaml.safe_load(value) for key, value in cell.items())


def _could_be_of(record: Record, cell: Cell) -> bool:
    """Return whether a run started without an experiment fits a cell, and no other environment key was named."""
    other = {key for key in record.named_keys if key.startswith("env.")} - cell.keys() - {"env.on_error"}
    return _fits(record, cell) and not other


def _value(record: Record, key: str) -> Any:
    """Return a run's value for a key of a cell; `suite.cfn.lr` means `bonus.lr`, which takes its value from there."""
    suite, _, rest = key.partition(".")
    owner, _, name = rest.partition(".")
    if suite == "suite" and owner in (record.agent, record.bonus):
        return record.value(f"{'bonus' if owner == record.bonus else 'agent'}.{name}")
    return record.value(key)


def _task(cell: Cell) -> str:
    return " ".join(cell[key] for key in ("env", "env.mode") if key in cell)
