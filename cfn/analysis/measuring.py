"""The numbers that `cfn compare` compares: one per run, over the steps that all runs of a task have reached."""

import difflib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cfn.analysis.grouping import Group
from cfn.analysis.scores import Returns, scores
from cfn.analysis.sides import Match
from cfn.errors import UsageError
from cfn.runs.reading import Series, read_metrics
from cfn.runs.record import Record

_MAX_LISTED_METRICS = 12
_UNREPORTED = 0.01
"""Difference in length that is not reported, as a fraction of the longest run: training episodes end at any step."""


class Measured(NamedTuple):
    """The runs of A and of B on one task.

    Attributes:
        a: A number per run of A that has one.
        b: A number per run of B that has one.
        last: Last step that all of these runs have reached; NaN if a side has no runs.
        phrase: Phrase that names the numbers.
        problems: Sentences on runs that cannot be compared fully.
    """

    a: list[float]
    b: list[float]
    last: float
    phrase: str
    problems: list[str]


def measure_score(match: Match, returns: Returns) -> Measured:
    """Return the score of each run, averaged over the steps that all runs of the task have.

    Args:
        match: Task.
        returns: Returns that are the score.
    """
    a, b = _runs(match.a), _runs(match.b)
    score = scores([*match.a, *match.b], returns)
    problems = []
    if score.returns != returns:
        problems.append(f"{match.task}: no run has returns of --score {returns}; those of {score.returns} are compared")
    last, more = _compare_lengths(match, score.of(a), score.of(b), "score")
    phrase = f"{score.description}, averaged over steps"
    return Measured(score.averages(a), score.averages(b), last, phrase, problems + more)


def measure_metric(match: Match, metric: str) -> Measured:
    """Return the value of a metric in each run, at the last step that all runs of the task have.

    Args:
        match: Task.
        metric: Name of the metric.
    """
    a, b = _series(match.a, metric), _series(match.b, metric)
    last, problems = _compare_lengths(match, a, b, metric)
    return Measured(_values_at(a, last), _values_at(b, last), last, f"the last {metric}", problems)


def require_metric(matches: Sequence[Match], metric: str) -> None:
    """Raise an error that lists metrics if no run has this one."""
    runs = [run for match in matches for run in _runs([*match.a, *match.b])]
    if any(read_metrics(run.folder, [metric]) for run in runs):
        return
    names = sorted({name for run in runs[:_MAX_LISTED_METRICS] for name in read_metrics(run.folder)})
    similar = difflib.get_close_matches(metric, names, cutoff=0.5)
    listed = list(dict.fromkeys([*similar, *names]))[:_MAX_LISTED_METRICS]
    raise UsageError(f"--metric {metric}: no run has it; some that exist are {', '.join(listed)}")


def _runs(groups: Sequence[Group]) -> list[Record]:
    return [run for group in groups for run in group.runs]


def _series(groups: Sequence[Group], metric: str) -> list[Series]:
    found = (read_metrics(run.folder, [metric]).get(metric) for run in _runs(groups))
    return [series for series in found if series is not None]


def _values_at(all_series: Sequence[Series], step: float) -> list[float]:
    """Return the last value of each series at or before a step; its first value if all are later."""
    positions = (int(np.searchsorted(series.steps, step, "right")) - 1 for series in all_series)
    return [float(series.values[max(0, at)]) for series, at in zip(all_series, positions, strict=True)]


def _compare_lengths(match: Match, a: Sequence[Series], b: Sequence[Series], what: str) -> tuple[float, list[str]]:
    """Return the last step that all series have, and sentences on runs without a series and on unequal lengths."""
    problems = []
    for name, groups, found in (("A", match.a, a), ("B", match.b, b)):
        runs = len(_runs(groups))
        if not found:
            problems.append(f"left out: {match.task}, where no run of {name} has a {what}")
        elif len(found) < runs:
            problems.append(f"left out: {runs - len(found)} of {runs} runs of {name} in {match.task}, without a {what}")
    if not (a and b):
        return math.nan, problems
    first = max(float(series.steps[0]) for series in (*a, *b))
    ends = [float(series.steps[-1]) for series in (*a, *b)]
    if first > min(ends):
        problems.append(f"{match.task}: the runs have no steps in common; the numbers are of different steps")
    elif max(ends) - min(ends) > _UNREPORTED * max(ends):
        between = f"runs end between steps {min(ends):,.0f} and {max(ends):,.0f}"
        problems.append(f"{match.task}: {between}; the first {min(ends):,.0f} are compared")
    return min(ends), problems
