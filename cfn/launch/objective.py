"""The objective of a study: one number for a run, from one of its metrics."""

from pathlib import Path
from typing import Literal

import numpy as np

from cfn.errors import UsageError
from cfn.runs.reading import read_metrics

STATISTICS = ("last", "mean", "best")
Direction = Literal["maximize", "minimize"]


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
        raise UsageError(f"objective={objective}: the run {folder} has no metric {metric}")
    best = np.max if direction == "maximize" else np.min
    return float({"last": series.values[-1], "mean": series.values.mean(), "best": best(series.values)}[statistic])
