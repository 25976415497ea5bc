"""The objective of a study: one number per run, computed from one of its metrics."""

from pathlib import Path
from typing import Literal

import numpy as np

from cfn.errors import UsageError
from cfn.runs.folder import as_typed
from cfn.runs.reading import Series, read_metrics
from cfn.runs.record import SPEED

STATISTICS = ("last", "mean", "best")
Direction = Literal["maximize", "minimize"]


class MissingMetricError(UsageError):
    """A run has no values of the metric of the objective."""


def parse(objective: str) -> tuple[str, str]:
    """Return metric and statistic of an objective such as `eval/return:mean`."""
    metric, colon, statistic = objective.partition(":")
    if not metric or (colon and statistic not in STATISTICS):
        form = f"METRIC:{'|'.join(STATISTICS)}, such as eval/return:mean"
        raise UsageError(f"objective={objective}: should be of the form {form}")
    return metric, statistic or "last"


def value(folder: Path, objective: str, direction: Direction) -> float:
    """Return the objective of a run.

    Args:
        folder: Run folder.
        objective: Metric and statistic.
        direction: Whether the best value is the largest or the smallest.
    """
    metric, statistic = parse(objective)
    series = read_metrics(folder, [metric]).get(metric)
    if series is None:
        raise MissingMetricError(f"objective={objective}: the run {as_typed(folder)} has no metric {metric}")
    return _score(series, statistic, direction)


def course(folder: Path, objective: str, direction: Direction) -> dict[int, float]:
    """Return what the objective of a run was after each of its evaluations, by step.

    Args:
        folder: Run folder.
        objective: Metric and statistic.
        direction: Whether the best value is the largest or the smallest.
    """
    metric, statistic = parse(objective)
    known = read_metrics(folder, [metric, SPEED])
    if metric not in known or SPEED not in known:
        return {}
    steps, values = known[metric]
    scores = {}
    for step in known[SPEED].steps:  # evaluations measure the speed, too
        if (so_far := int(np.searchsorted(steps, step, side="right"))) > 0:
            scores[int(step)] = _score(Series(steps[:so_far], values[:so_far]), statistic, direction)
    return scores


def _score(series: Series, statistic: str, direction: Direction) -> float:
    best = np.max if direction == "maximize" else np.min
    return float({"last": series.values[-1], "mean": series.values.mean(), "best": best(series.values)}[statistic])
