"""Statistics over seeds, and runs compared on a common grid of steps.

There are two statistics. `mean`: mean and standard error, as in the paper. `iqm` (the default): interquartile mean,
the mean of the middle half of the seeds, with a 95% bootstrap interval. On sparse tasks the scores of a few seeds are
far from normal; the interquartile mean ignores single outliers, and its interval may be asymmetric (Agarwal et al.,
Deep Reinforcement Learning at the Edge of the Statistical Precipice, 2021).
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from cfn.runs.reading import Numbers, Series

Stat = Literal["iqm", "mean"]

MEANING: dict[Stat, str] = {
    "iqm": "interquartile mean and 95% bootstrap interval",
    "mean": "mean and standard error",
}
MIN_RUNS_TO_TRIM = 4
"""Smallest number of runs from which the interquartile mean leaves any out."""

RESAMPLES = 1000
"""Number of bootstrap resamples."""
GRID_POINTS = 200
"""Largest number of steps in a common grid."""


def meaning(stat: Stat, most_seeds: int) -> str:
    """Return the description of a statistic.

    Args:
        stat: Statistic.
        most_seeds: Largest number of seeds in any setting.
    """
    if stat == "iqm" and most_seeds < MIN_RUNS_TO_TRIM:
        return "mean (too few seeds to trim) and 95% bootstrap interval"
    return MEANING[stat]


class Estimate(NamedTuple):
    """A statistic over runs, per column: centre, interval (NaN if unknown) and number of runs."""

    centre: Numbers
    low: Numbers
    high: Numbers
    runs: npt.NDArray[np.int64]


def interquartile_mean(values: Any) -> Numbers:
    """Return the mean of the middle half along the last axis: a quarter, rounded down, is cut at each end."""
    values = np.sort(np.asarray(values, float), axis=-1)
    cut = values.shape[-1] // 4
    middle: Numbers = values[..., cut : values.shape[-1] - cut].mean(axis=-1)
    return middle


def bootstrap(strata: Sequence[Numbers], seed: int = 0) -> tuple[Numbers, Numbers]:
    """Return the 95% percentile bootstrap interval of the interquartile mean over the runs of all strata.

    Resampling is stratified: runs are drawn with replacement within their own stratum (a task), so every resample has
    the original number of runs of each task.

    Args:
        strata: One array per stratum: a row per run, a column per statistic; all have the same columns.
        seed: Seed of the resampling.
    """
    rng = np.random.default_rng(seed)
    values = np.concatenate(strata)
    # Number of times each run is drawn in each resample. All columns use the same resamples.
    drawn = [rng.multinomial(n, np.full(n, 1 / n), RESAMPLES) for n in map(len, strata)]
    times = np.concatenate(drawn, axis=1).T.astype(np.int32)
    order = np.argsort(values, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    number, cut = len(values), len(values) // 4
    # Take the runs from lowest to highest and count the draws at or below each. Clipped to the middle half, the
    # increments of this count are the runs' weights in the trimmed sum. Summation by parts turns that sum into one
    # product per run, so the resamples need not be sorted.
    shape = (values.shape[1], RESAMPLES)
    at_or_below, within, totals = np.zeros(shape, np.int32), np.empty(shape, np.int32), np.empty(shape)
    totals[:] = ((number - cut) * ordered[-1] - cut * ordered[0])[:, None]
    for rank, step in zip(order[:-1], np.diff(ordered, axis=0), strict=True):
        at_or_below += times[rank]
        np.maximum(at_or_below, cut, out=within)
        np.minimum(within, number - cut, out=within)
        totals -= within * step[:, None]
    low, high = np.percentile(totals / (number - 2 * cut), (2.5, 97.5), axis=1)
    return low, high


def iqm_with_interval(strata: Sequence[Numbers]) -> Estimate:
    """Return the interquartile mean over the runs of all strata, with its 95% stratified bootstrap interval."""
    values = np.concatenate(strata)
    centre = interquartile_mean(values.T)
    low, high = bootstrap(strata) if _spread_is_known(strata) else np.full((2, *centre.shape), np.nan)
    return Estimate(centre, low, high, np.full(centre.shape, len(values)))


def mean_with_error(strata: Sequence[Numbers]) -> Estimate:
    """Return the mean over the runs of all strata, with the standard error of a stratified sample."""
    values = np.concatenate(strata)
    centre = values.mean(axis=0)
    error = np.full(centre.shape, np.nan)
    if _spread_is_known(strata):
        error = np.sqrt(sum(len(runs) * runs.var(axis=0, ddof=1) for runs in strata)) / len(values)
    return Estimate(centre, centre - error, centre + error, np.full(centre.shape, len(values)))


def _spread_is_known(strata: Sequence[Numbers]) -> bool:
    """Return whether every stratum has at least two runs; otherwise the interval is NaN."""
    return all(len(runs) > 1 for runs in strata)


_ESTIMATES: dict[Stat, Callable[[Sequence[Numbers]], Estimate]] = {"iqm": iqm_with_interval, "mean": mean_with_error}


def estimate(values: Numbers, stat: Stat) -> Estimate:
    """Return the statistic of each column over the runs (rows) that have a value there.

    Args:
        values: A row per run, a column per step; NaN where a run has no value.
        stat: Statistic.
    """
    present = ~np.isnan(values)
    centre, low, high = np.full((3, values.shape[1]), np.nan)
    patterns, which = np.unique(present, axis=1, return_inverse=True)
    for i, rows in enumerate(patterns.T):
        here = np.flatnonzero(which == i)
        if rows.any():
            part = _ESTIMATES[stat]([values[np.ix_(rows, here)]])
            centre[here], low[here], high[here] = part[:3]
    return Estimate(centre, low, high, present.sum(axis=0))


def estimate_over_tasks(tasks: Sequence[Sequence[float]], stat: Stat) -> Estimate:
    """Return the statistic of one number per run, over the runs of several tasks; each task is a stratum."""
    return _ESTIMATES[stat]([np.array(task, float)[:, None] for task in tasks])


def common_grid(series: Sequence[Series]) -> Numbers:
    """Return the steps at which runs are compared: all measured steps or, if there are many, evenly spaced steps."""
    steps = np.unique(np.concatenate([s.steps for s in series])) if series else np.zeros(0)
    return steps if len(steps) <= GRID_POINTS else np.linspace(steps[0], steps[-1], GRID_POINTS)


def on_grid(series: Sequence[Series], grid: Numbers) -> Numbers:
    """Return each run's values (rows) at the steps of the grid, linearly interpolated; NaN outside the run's steps."""
    if not series:
        return np.zeros((0, len(grid)))
    return np.stack([np.interp(grid, s.steps, s.values, left=np.nan, right=np.nan) for s in series])


def average(series: Series, last: float = np.inf, first: float = -np.inf) -> float:
    """Return the mean of a curve over steps: the area under it, divided by the steps it spans.

    Args:
        series: Curve to average.
        last: Step at which to stop; default: the end of the curve.
        first: Step at which to start; default: the beginning of the curve.
    """
    last = max(series.steps[0], min(last, series.steps[-1]))
    first = min(last, max(first, series.steps[0]))
    inside = (first < series.steps) & (series.steps < last)
    steps = np.concatenate([[first], series.steps[inside], [last]])
    values = np.interp(steps, series.steps, series.values)
    span = steps[-1] - steps[0]
    return float(np.trapezoid(values, steps) / span) if span else float(values[-1])


def moving_mean(values: Numbers, window: int) -> Numbers:
    """Return the mean of the last `window` values at each position; of fewer values at the beginning."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    means: Numbers = (sums[ends] - sums[starts]) / (ends - starts)
    return means
