"""Runs in numbers: a row for each setting, as Markdown for people and CSV for programs."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cfn.analysis.files import is_number
from cfn.analysis.groups import Group
from cfn.analysis.panels import Scores, Style, scores, unequal
from cfn.analysis.runs import SCORE, SPEED, Record
from cfn.analysis.stats import Estimate, Stat, meaning, over_tasks
from cfn.errors import UsageError


class Row(NamedTuple):
    """One setting; what is not known is None. Of its seeds, some may have no score yet, or have come less far."""

    task: str
    method: str
    seeds: int
    with_score: int
    steps: int
    most_steps: int
    final: Estimate | None
    area: Estimate | None
    scored: float
    speed: float | None
    memory: float | None


def write_table(groups: Sequence[Group], style: Style, out: Path) -> tuple[list[Path], str]:
    """Write `table.md` and `table.csv`; returns where they are, and the Markdown."""
    table = rows(groups, style)
    said = "".join(f"\n{sentence}.\n" for sentence in unequal(groups))
    texts = {"table.md": markdown(table, style.stat) + said, "table.csv": as_csv(table, style.stat)}
    for name, text in texts.items():
        try:
            (out / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{out / name} cannot be written: {error.strerror}") from error
    return [out / name for name in texts], texts["table.md"]


def rows(groups: Sequence[Group], style: Style) -> list[Row]:
    """A row for each setting; where all scores are between 0 and 1, also one for each method over all tasks."""
    tasks = list(dict.fromkeys(one.task for one in groups))
    score = {task: scores([one for one in groups if one.task == task]) for task in tasks}
    result = [_row(one.task, one.label, [one], score, style) for one in groups]
    if any(s.values.min() < 0 or s.values.max() > 1 for one in groups for s in score[one.task].of(one.runs)):
        return result  # scores of several tasks are on one scale only if they are chances of success
    for label in dict.fromkeys(one.label for one in groups):
        alike = [one for one in groups if one.label == label]
        whole = all(len(score[one.task].of(one.runs)) == len(one.runs) for one in alike)
        if whole and len(alike) == len(tasks) > 1:  # else methods would be compared over different tasks
            result.append(_row(f"all {len(tasks)} tasks", label, alike, score, style))
    return result


HEADER = (
    "environment", "method", "seeds", "steps", "final score", "area under the curve / steps",
    "seeds that ever scored", "steps/s", "memory (MB)",
)  # fmt: skip


def cells(table: Iterable[Row]) -> list[tuple[str, ...]]:
    """The table under its `HEADER`, in words."""
    return [
        (
            row.task, row.method, _seeds(row), _steps(row), _interval(row.final), _interval(row.area),
            f"{row.scored:.0%}", _number(row.speed), _number(row.memory),
        )
        for row in table
    ]  # fmt: skip


def markdown(table: Sequence[Row], stat: Stat) -> str:
    """The table for people."""
    lines = [HEADER, ("---", "---", *["---:"] * (len(HEADER) - 2)), *cells(table)]
    text = "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
    return f"{text}\n\n{legend(table, stat)}\n"


def legend(table: Sequence[Row], stat: Stat) -> str:
    """What the table's numbers are."""
    what = meaning(stat, max((row.seeds for row in table), default=0))
    return (
        f"Scores: {what} over seeds; of one seed there is no interval. Area: up to the step that all runs of the "
        "environment have come to. Speed: median; memory: the largest."
    )


def as_csv(table: Iterable[Row], stat: Stat) -> str:
    """The table for programs; intervals that are not known are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    estimates = [f"{what}{end}" for what in ("final_score", "area") for end in ("", "_low", "_high")]
    rest = ["scored", "steps_per_second", "memory_mb"]
    writer.writerow(
        ["environment", "method", "seeds", "seeds_with_score", "steps", "most_steps", "stat", *estimates, *rest]
    )
    for row in table:
        numbers: list[Any] = []
        for one in (row.final, row.area):
            values = [None] * 3 if one is None else [float(v[0]) for v in one[:3]]
            numbers += ["" if value is None or np.isnan(value) else f"{value:.6g}" for value in values]
        rest = [f"{row.scored:.4g}", *("" if v is None else f"{v:.6g}" for v in (row.speed, row.memory))]
        writer.writerow([*row[:6], stat, *numbers, *rest])
    return out.getvalue()


def _row(task: str, method: str, groups: Sequence[Group], score: Mapping[str, Scores], style: Style) -> Row:
    runs = [run for one in groups for run in one.runs]
    finals = [[float(series.values[-1]) for series in score[one.task].of(one.runs)] for one in groups]
    areas = [score[one.task].averages(one.runs) for one in groups]
    speeds = [float(np.median(run.metrics[SPEED].values)) for run in runs if SPEED in run.metrics]
    memory = [run.summary["memory_mb"] for run in runs if is_number(run.summary.get("memory_mb"))]
    return Row(
        task=task,
        method=method,
        seeds=len(runs),
        with_score=sum(map(len, finals)),
        steps=int(min(run.reached for run in runs)),
        most_steps=int(max(run.reached for run in runs)),
        final=over_tasks(finals, style.stat) if any(finals) else None,
        area=over_tasks(areas, style.stat) if any(areas) else None,
        scored=sum(_ever_scored(run) for run in runs) / len(runs),
        speed=float(np.median(speeds)) if speeds else None,
        memory=max(memory, default=None),
    )


def _ever_scored(run: Record) -> bool:
    """Whether any return, in training or in an evaluation, was above 0."""
    return any(series is not None and (series.values > 0).any() for series in (run.metrics.get(SCORE), run.training))


def _interval(one: Estimate | None) -> str:
    if one is None:
        return ""
    centre, low, high = (round(float(values[0]), 12) + 0.0 for values in one[:3])  # an exact 0 is told as 0
    return f"{centre:.3g}" if np.isnan(low) else f"{centre:.3g} ({low:.3g} to {high:.3g})"


def _seeds(row: Row) -> str:
    return f"{row.seeds}" if row.with_score == row.seeds else f"{row.with_score} of {row.seeds}"


def _steps(row: Row) -> str:
    return f"{row.steps:,}" if row.steps == row.most_steps else f"{row.steps:,} to {row.most_steps:,}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
