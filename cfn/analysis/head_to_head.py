"""`cfn compare`: two settings, task by task and over all tasks, as Markdown for people and as JSON for programs."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cfn.analysis.markdown import markdown_table, with_interval
from cfn.analysis.measuring import measure_metric, measure_score, require_metric
from cfn.analysis.scores import Returns
from cfn.analysis.sides import Match
from cfn.analysis.tally import Balance, balance
from cfn.analysis.two_sample import (
    FEW_SEEDS,
    MAX_EXACT_RUNS,
    TOO_NARROW,
    Interval,
    RankTest,
    Samples,
    difference,
    improvement,
    rank_test,
    samples,
)
from cfn.errors import UsageError
from cfn.numbers import readable

_SMALLEST_P = 1e-16
"""Smallest p value that is printed as a number; smaller ones are printed as a bound."""


class Row(NamedTuple):
    """One task, or all of them.

    Attributes:
        task: Name of the task.
        runs: Number of runs of A and of B with a score.
        steps: Last step that is compared; None over several tasks.
        means: Mean score of A and of B; None over tasks without a common scale.
        difference: Mean score of A minus that of B; None over tasks without a common scale.
        improvement: Probability of improvement of A over B.
        test: Mann-Whitney test.
    """

    task: str
    runs: tuple[int, int]
    steps: int | None
    means: tuple[float, float] | None
    difference: Interval | None
    improvement: Interval
    test: RankTest


class HeadToHead(NamedTuple):
    """A comparison of A and B.

    Attributes:
        score: Phrase that names the numbers that are compared.
        labels: Names of the settings of A and of B.
        rows: A row per task and, if there are several, a row over all of them.
        balance: Tasks on which A is ahead, wins, ties and loses.
        problems: Sentences on runs that cannot be compared fully.
    """

    score: str
    labels: tuple[str, str]
    rows: list[Row]
    balance: Balance
    problems: list[str]


def head_to_head(matches: Sequence[Match], returns: Returns, metric: str | None) -> HeadToHead:
    """Return the comparison of A and B on the tasks that both have.

    Args:
        matches: Tasks.
        returns: Returns that are the score.
        metric: Logged metric to compare instead of the score; None: the score.
    """
    if metric is not None:
        require_metric(matches, metric)
    measured = [measure_score(one, returns) if metric is None else measure_metric(one, metric) for one in matches]
    problems = [problem for one in measured for problem in one.problems]
    complete = [(match, one) for match, one in zip(matches, measured, strict=True) if one.a and one.b]
    if not complete:
        raise UsageError("; ".join(problems))
    tasks = [samples(one.a, one.b) for _, one in complete]
    rows = [
        _row(match.task, [task], int(one.last), common_scale=True)
        for (match, one), task in zip(complete, tasks, strict=True)
    ]
    result = balance(row.difference for row in rows if row.difference is not None)
    if len(rows) > 1:
        chances = all(values.min() >= 0 and values.max() <= 1 for task in tasks for values in task)
        rows.append(_row(f"all {len(rows)} tasks", tasks, None, common_scale=chances))
    phrase = "; ".join(dict.fromkeys(one.phrase for _, one in complete))
    labels = tuple(_joined([match.labels[side] for match, _ in complete]) for side in (0, 1))
    return HeadToHead(phrase, (labels[0], labels[1]), rows, result, problems)


def as_markdown(comparison: HeadToHead, sources: tuple[str, str]) -> str:
    """Return the comparison as Markdown, with its legend.

    Args:
        comparison: Comparison.
        sources: Where the runs of A and of B come from.
    """
    header = ("task", "seeds of A", "seeds of B", "steps", "A", "B", "A - B", "P(A > B)", "U", "p")
    lines = [
        (
            row.task,
            *map(str, row.runs),
            "" if row.steps is None else f"{row.steps:,}",
            *(("", "") if row.means is None else map(readable, row.means)),
            "" if row.difference is None else with_interval(*row.difference),
            with_interval(*row.improvement),
            f"{row.test.u:,.1f}".removesuffix(".0"),
            f"{row.test.p:.3g}" if row.test.p >= _SMALLEST_P else f"< {_SMALLEST_P:g}",
        )
        for row in comparison.rows
    ]
    sides = "".join(
        f"{name}: {label} ({source})  \n" for name, label, source in zip("AB", comparison.labels, sources, strict=True)
    )
    counts = comparison.balance
    ahead = (
        f"A's mean is higher on {counts.ahead} of {counts.tasks} tasks, B's on {counts.behind}. Wins of A: "
        f"{counts.wins}, ties: {counts.ties}, losses: {counts.losses}; a tie if the interval of A - B contains 0, or "
        "for a single seed.\n\n"
    )
    legend = (
        f"A, B: mean over seeds of {comparison.score}, up to the last step that all runs of the task have reached. "
        "P(A > B): probability of improvement; equal scores count one half, tasks count equally. Intervals: 95% "
        "bootstrap, stratified by task; none for a single seed. U, p: Mann-Whitney test, two-sided, exact up to "
        f"{MAX_EXACT_RUNS} runs of a task."
    )
    few = f" {TOO_NARROW}." if min(min(row.runs) for row in comparison.rows) < FEW_SEEDS else ""
    table = markdown_table(header, lines, names=1)
    return f"{sides}\n{table}\n\n{ahead if counts.tasks > 1 else ''}{legend}{few}\n"


def as_json(comparison: HeadToHead, sources: tuple[str, str], matches: Sequence[Match]) -> dict[str, Any]:
    """Return the comparison as JSON values; unknown numbers are None.

    Args:
        comparison: Comparison.
        sources: Where the runs of A and of B come from.
        matches: Tasks.
    """
    folders = [
        [str(run.folder) for match in matches for one in (match.a, match.b)[side] for run in one.runs]
        for side in (0, 1)
    ]
    *tasks, last = map(_row_as_json, comparison.rows)
    sides = {
        name: {"setting": label, "source": source, "runs": runs}
        for name, label, source, runs in zip("ab", comparison.labels, sources, folders, strict=True)
    }
    return {
        **sides,
        "score": comparison.score,
        "tasks": tasks or [last],
        "all_tasks": last if tasks else None,
        "balance": comparison.balance._asdict(),
        "problems": comparison.problems,
    }


def _row(name: str, tasks: Sequence[Samples], steps: int | None, common_scale: bool) -> Row:
    """Return the row of one or more tasks.

    Args:
        name: Name in the first column.
        tasks: Scores of each task.
        steps: Last step that is compared.
        common_scale: Whether the scores of the tasks can be averaged: those of one task, and success rates.
    """
    means = [float(np.mean([side.mean() for side in sides])) for sides in zip(*tasks, strict=True)]
    return Row(
        task=name,
        runs=(sum(len(task.a) for task in tasks), sum(len(task.b) for task in tasks)),
        steps=steps,
        means=(means[0], means[1]) if common_scale else None,
        difference=difference(tasks) if common_scale else None,
        improvement=improvement(tasks),
        test=rank_test(tasks),
    )


def _joined(labels: Sequence[str]) -> str:
    """Return the distinct labels of a side: the first few, if keys differ between tasks."""
    distinct = list(dict.fromkeys(labels))
    return "; ".join(distinct[:3]) + ("; ..." if len(distinct) > 3 else "")


def _row_as_json(row: Row) -> dict[str, Any]:
    means = (None, None) if row.means is None else row.means
    return {
        "task": row.task,
        "runs_a": row.runs[0],
        "runs_b": row.runs[1],
        "steps": row.steps,
        "mean_a": means[0],
        "mean_b": means[1],
        "difference": _interval_as_json(row.difference),
        "improvement": _interval_as_json(row.improvement),
        **row.test._asdict(),
    }


def _interval_as_json(interval: Interval | None) -> dict[str, float | None] | None:
    if interval is None:
        return None
    return {name: None if math.isnan(value) else value for name, value in interval._asdict().items()}
