"""The two sides of a comparison, A and B: their runs, and the check that they can be compared.

A side is one setting per task. Several settings of a task on one side are refused unless they are to be pooled,
because a mean over them describes no single setting.
"""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from cfn.analysis.grouping import Group, as_written, group
from cfn.errors import UsageError
from cfn.runs.reading import flat, is_number, printable
from cfn.runs.record import Record

_MAX_LISTED = 8
"""Values or names that a sentence lists; the number of further ones follows."""


@dataclass(frozen=True)
class Filter:
    """A condition on runs: a config key, or `env`, `agent` or `bonus`, and its value.

    Attributes:
        option: Option of the command line that it came from.
        key: Key, as on the command line of `cfn train`.
        value: Value, or alternatives separated by commas.
    """

    option: str
    key: str
    value: str

    def matches(self, record: Record) -> bool:
        """Return whether a run has the value."""
        return any(_equal(record.value(self.key), one) for one in (self.value, *self.value.split(",")))

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


class Side(NamedTuple):
    """One side of a comparison.

    Attributes:
        name: `A` or `B`.
        source: Where its runs come from: a folder, or filters.
        option: Option that chooses among its runs.
        records: Its runs.
    """

    name: str
    source: str
    option: str
    records: Sequence[Record]


class Match(NamedTuple):
    """One task: the settings of A and of B (several only if they are pooled), and the label of each side."""

    task: str
    a: list[Group]
    b: list[Group]
    labels: tuple[str, str]


def select(records: Sequence[Record], filters: Iterable[Filter]) -> list[Record]:
    """Return the runs that match all filters; at least one."""
    chosen, before = list(records), ""
    for one in filters:
        matching = [record for record in chosen if one.matches(record)]
        if not matching:
            raise UsageError(f"{one.option} {one} matches none of the {_count(chosen)}{before}: {_hint(chosen, one)}")
        chosen, before = matching, f"{before} {'and' if before else 'with'} {one}"
    return chosen


def match(a: Side, b: Side, pool: bool) -> tuple[list[Match], list[str]]:
    """Return the tasks that both sides have, and sentences on runs and tasks that are left out.

    Args:
        a: First side.
        b: Second side.
        pool: Whether several settings of a task are pooled.
    """
    of_b_too = {record.folder.resolve() for record in b.records}
    if both := [record.folder for record in a.records if record.folder.resolve() in of_b_too]:
        number = "1 run is" if len(both) == 1 else f"{len(both):,} runs are"
        sides = f"A ({a.source}) and B ({b.source})"
        raise UsageError(f"{number} in both {sides}, such as {printable(both[0])}: choose sides without common runs")
    (of_a, problems), (of_b, others) = _by_task(a, pool), _by_task(b, pool)
    problems += others
    shared = [task for task in of_a if task in of_b]
    for side, here, there in ((a, of_a, of_b), (b, of_b, of_a)):
        if alone := [task for task in here if task not in there]:
            problems.append(f"left out: tasks that only {side.name} has: {_listed(alone)}")
    if not shared:
        raise UsageError(f"A and B have no task in common: A has {_listed(of_a)}; B has {_listed(of_b)}")
    return [Match(task, of_a[task], of_b[task], _labels(of_a[task], of_b[task])) for task in shared], problems


def same_setting(matches: Iterable[Match]) -> Match | None:
    """Return the first task on which a setting of A is also one of B."""
    for one in matches:
        runs = [run for part in (*one.a, *one.b) for run in part.runs]
        if len(group(runs)[0]) < len(one.a) + len(one.b):
            return one
    return None


def _by_task(side: Side, pool: bool) -> tuple[dict[str, list[Group]], list[str]]:
    """Return the settings of a side by task, and a sentence if runs were left out."""
    groups, problems = group(side.records)
    tasks: dict[str, list[Group]] = {}
    for one in groups:
        tasks.setdefault(one.task, []).append(one)
    if not pool:
        remedy = f"choose one with {side.option} KEY=VALUE, or add --pool to compare all of its runs together"
        for task, here in tasks.items():
            if len(here) > 1:
                raise UsageError(
                    f"{side.name} ({side.source}) has {len(here)} settings in {task}, {_differences(here)}: {remedy}"
                )
        if len(bonuses := sorted({one.first.bonus for one in groups})) > 1:
            several = f"several bonuses on different tasks ({_listed(bonuses)})"
            raise UsageError(f"{side.name} ({side.source}) has {several}: {remedy}")
    return tasks, problems


def _labels(a: Sequence[Group], b: Sequence[Group]) -> tuple[str, str]:
    """Return the labels of both sides on one task, with the keys in which they differ."""
    pair, _ = group([a[0].first, b[0].first])
    labels = [next((one.label for one in pair if one.first is side[0].first), side[0].label) for side in (a, b)]
    pooled = [f"{len(side)} settings, pooled" if len(side) > 1 else "" for side in (a, b)]
    return pooled[0] or labels[0], pooled[1] or labels[1]


def _differences(groups: Sequence[Group]) -> str:
    """Return a phrase on the keys in which settings of one task differ."""
    found = {name: {getattr(one.first, name) for one in groups} for name in ("agent", "bonus")}
    for one in groups:
        for key, value in one.keys.items():
            found.setdefault(key, set()).add(as_written(value))
    differing = [f"{key} ({_listed(sorted(values))})" for key, values in found.items() if len(values) > 1]
    return f"which differ in {_listed(differing)}" if differing else f"namely {_listed(one.label for one in groups)}"


def _hint(records: Sequence[Record], failed: Filter) -> str:
    """Return a phrase on the values, or the similar keys, that exist."""
    values = {as_written(value) for record in records if (value := record.value(failed.key)) is not None}
    if values:
        return f"{failed.key} is {_listed(sorted(values))}"
    keys = {key for record in records for key, _ in flat(record.config)} | {"env", "agent", "bonus"}
    keys = {key for key in keys if not key.endswith("_target_")}
    similar = difflib.get_close_matches(failed.key, keys, cutoff=0.5)
    return f"no run has the key {failed.key}" + (f"; similar keys are {_listed(similar)}" if similar else "")


def _equal(value: Any, text: str) -> bool:
    """Return whether a value of a config equals the value of the text on a command line."""
    try:
        meant = yaml.safe_load(text)
        meant = float(meant) if isinstance(meant, str) else meant  # YAML does not read 1e-3 as a number
    except (yaml.YAMLError, ValueError):
        meant = text
    if is_number(value) and is_number(meant) and isinstance(value, bool) == isinstance(meant, bool):
        return bool(value == meant)
    return text in (str(value), as_written(value)) or (isinstance(value, list) and value == meant)


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(names[:_MAX_LISTED]) + more


def _count(records: Sequence[Record]) -> str:
    return "1 run" if len(records) == 1 else f"{len(records):,} runs"
