"""Tables of results: a row per setting, as Markdown for people and as CSV for programs; the tally of methods below."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cfn.analysis import tally
from cfn.analysis.grouping import Group
from cfn.analysis.markdown import markdown_table, with_interval
from cfn.analysis.scores import Returns, Scores, scores, unequal
from cfn.analysis.stats import Estimate, Stat, estimate_over_tasks, meaning
from cfn.errors import UsageError
from cfn.runs.reading import is_number
from cfn.runs.record import SCORE, SPEED, Record


class Row(NamedTuple):
    """One setting. Numbers that are unknown are None.

    Attributes:
        task: Environment, with its mode or game if it has several.
        method: Name of the setting.
        seeds: Number of seeds.
        with_score: Number of seeds that have a score.
        steps: Steps of the shortest run.
        most_steps: Steps of the longest run.
        final: Last score.
        area: Score averaged over steps.
        scored: Fraction of seeds with any return above 0.
        speed: Median of the steps per second.
        memory: Largest peak memory in MiB (`memory_mb` of the summaries).
    """

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


def write_table(groups: Sequence[Group], stat: Stat, out: Path, returns: Returns = "eval") -> tuple[list[Path], str]:
    """Write `table.md` and `table.csv` and, if there are several methods, `tally.csv`.

    Args:
        groups: Settings to compare.
        stat: Statistic over seeds.
        out: Existing folder to write to.
        returns: Returns that are the score.

    Returns:
        Paths of the files, and the Markdown.
    """
    table = rows(groups, stat, returns)
    pairs = tally.tally(groups, _scores_by_task(groups, returns))
    sentences = [_described(groups, returns), *(f"{sentence}." for sentence in unequal(groups, returns))]
    parts = [markdown(table, stat), *(f"{sentence}\n" for sentence in sentences)]
    texts = {"table.csv": as_csv(table, stat)}
    if pairs:
        parts.append(tally.as_markdown(pairs))
        texts["tally.csv"] = tally.as_csv(pairs)
    elif (methods := len({one.label for one in groups})) > tally.MAX_METHODS:
        parts.append(f"No tally: there are {methods} methods, more than {tally.MAX_METHODS}; see cfn compare.\n")
    texts = {"table.md": "\n".join(parts), **texts}
    for name, content in texts.items():
        try:
            (out / name).write_text(content, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{out / name} cannot be written: {error.strerror}") from error
    return [out / name for name in texts], texts["table.md"]


def rows(groups: Sequence[Group], stat: Stat, returns: Returns = "eval") -> list[Row]:
    """Return a row per setting and, if all scores are between 0 and 1, a row per method over all tasks."""
    score = _scores_by_task(groups, returns)
    result = [_row(one.task, one.label, [one], score, stat) for one in groups]
    if any(s.values.min() < 0 or s.values.max() > 1 for one in groups for s in score[one.task].of(one.runs)):
        return result  # tasks share a scale only if their scores are success rates
    for label in dict.fromkeys(one.label for one in groups):
        alike = [one for one in groups if one.label == label]
        complete = all(len(score[one.task].of(one.runs)) == len(one.runs) for one in alike)
        if complete and len(alike) == len(score) > 1:  # otherwise methods would be compared over different tasks
            result.append(_row(f"all {len(score)} tasks", label, alike, score, stat))
    return result


def _described(groups: Sequence[Group], returns: Returns) -> str:
    """Return a sentence that names the returns that are the score."""
    by_description: dict[str, list[str]] = {}
    for task, one in _scores_by_task(groups, returns).items():
        by_description.setdefault(one.description, []).append(task)
    if len(by_description) == 1:
        return f"Score: {next(iter(by_description))}."
    return " ".join(f"Score of {', '.join(tasks)}: {text}." for text, tasks in by_description.items())


def _scores_by_task(groups: Sequence[Group], returns: Returns) -> dict[str, Scores]:
    tasks = dict.fromkeys(one.task for one in groups)
    return {task: scores([one for one in groups if one.task == task], returns) for task in tasks}


HEADER = (
    "environment", "method", "seeds", "steps", "final score", "area under the curve / steps",
    "seeds that ever scored", "steps/s", "memory (MiB)",
)  # fmt: skip


def cells(table: Iterable[Row]) -> list[tuple[str, ...]]:
    """Return the rows as text, with the columns of `HEADER`."""
    return [
        (
            row.task, row.method, _seeds(row), _steps(row), _interval(row.final), _interval(row.area),
            f"{row.scored:.0%}", _number(row.speed), _number(row.memory),
        )
        for row in table
    ]  # fmt: skip


def markdown(table: Sequence[Row], stat: Stat) -> str:
    """Return the table as Markdown, with its legend."""
    return f"{markdown_table(HEADER, cells(table), names=2)}\n\n{legend(table, stat)}\n"


def legend(table: Sequence[Row], stat: Stat) -> str:
    """Return sentences that explain the numbers of the table."""
    statistic = meaning(stat, max((row.seeds for row in table), default=0))
    return (
        f"Scores: {statistic} over seeds; no interval for a single seed. Area: up to the last step that all runs of "
        "the environment have reached. Speed: median. Memory: largest."
    )


def as_csv(table: Iterable[Row], stat: Stat) -> str:
    """Return the table as CSV; unknown numbers are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    estimates = [f"{name}{end}" for name in ("final_score", "area") for end in ("", "_low", "_high")]
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


def _row(task: str, method: str, groups: Sequence[Group], score: Mapping[str, Scores], stat: Stat) -> Row:
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
        steps=int(min(run.last_step for run in runs)),
        most_steps=int(max(run.last_step for run in runs)),
        final=estimate_over_tasks(finals, stat) if any(finals) else None,
        area=estimate_over_tasks(areas, stat) if any(areas) else None,
        scored=sum(_ever_scored(run) for run in runs) / len(runs),
        speed=float(np.median(speeds)) if speeds else None,
        memory=max(memory, default=None),
    )


def _ever_scored(run: Record) -> bool:
    """Return whether any return, in training or in an evaluation, was above 0."""
    return any(series is not None and (series.values > 0).any() for series in (run.metrics.get(SCORE), run.training))


def _interval(one: Estimate | None) -> str:
    if one is None:
        return ""
    return with_interval(*(float(values[0]) for values in one[:3]))


def _seeds(row: Row) -> str:
    return f"{row.seeds}" if row.with_score == row.seeds else f"{row.with_score} of {row.seeds}"


def _steps(row: Row) -> str:
    return f"{row.steps:,}" if row.steps == row.most_steps else f"{row.steps:,} to {row.most_steps:,}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
