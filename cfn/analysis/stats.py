"""What is said of several seeds: their centre, and how sure it is.

Two ways. The mean with its standard error is the paper's. The interquartile mean (of the middle half of the seeds)
with a 95% bootstrap interval is the default, because few seeds of a sparse task are far from normal: it leaves out
what single lucky or unlucky seeds do, and its interval is as lopsided as the seeds are (Agarwal et al., Deep
Reinforcement Learning at the Edge of the Statistical Precipice, 2021).
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from cfn.analysis.files import Numbers, Series

Stat = Literal["iqm", "mean"]

MEANING: dict[Stat, str] = {
    "iqm": "interquartile mean and 95% bootstrap interval",
    "mean": "mean and standard error",
}
FEW = 4
"""Runs of which the interquartile mean begins to leave any out."""

RESAMPLES = 1000
POINTS = 200
"""Of a grid on which runs are compared that were not measured at the same few steps."""


def meaning(stat: Stat, most: int) -> str:
    """A statistic in words, where settings have so many seeds at the most."""
    return "mean (too few seeds to trim) and 95% bootstrap interval" if stat == "iqm" and most < FEW else MEANING[stat]


class Estimate(NamedTuple):
    """A statistic over runs, its interval (NaN: not known), and of how many runs it is; one for every column."""

    centre: Numbers
    low: Numbers
    high: Numbers
    runs: npt.NDArray[np.int64]


def interquartile_mean(values: Any) -> Numbers:
    """Mean of the middle half, along the last dimension; a quarter of the values, rounded down, is cut at each end."""
    values = np.sort(np.asarray(values, float), axis=-1)
    cut = values.shape[-1] // 4
    middle: Numbers = values[..., cut : values.shape[-1] - cut].mean(axis=-1)
    return middle


def bootstrap(strata: Sequence[Numbers], seed: int = 0) -> tuple[Numbers, Numbers]:
    """The 95% percentile interval of the interquartile mean over all strata's runs, by stratified resampling.

    Runs are drawn again, with replacement, within their own stratum (a task), so that every resample has as many runs
    of each task as there are.

    Args:
        strata: For each, its runs (rows) and their numbers (columns; as many in every stratum).
        seed: The same seed and runs give the same interval.
    """
    rng = np.random.default_rng(seed)
    values = np.concatenate(strata)
    # how often each run is drawn in each resample; the same resamples serve every column
    drawn = [rng.multinomial(n, np.full(n, 1 / n), RESAMPLES) for n in map(len, strata)]
    times = np.concatenate(drawn, axis=1).T.astype(np.int32)
    order = np.argsort(values, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    number, cut = len(values), len(values) // 4
    # From the lowest run to the highest, so many draws are at or below each; held within the middle half, their
    # increments are the runs' weights. Summed by parts, that is one product for each run, and nothing is sorted.
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


def with_interval(strata: Sequence[Numbers]) -> Estimate:
    """Interquartile mean over the runs of all strata, with its 95% stratified bootstrap interval."""
    values = np.concatenate(strata)
    centre = interquartile_mean(values.T)
    low, high = bootstrap(strata) if _spread_is_known(strata) else np.full((2, *centre.shape), np.nan)
    return Estimate(centre, low, high, np.full(centre.shape, len(values)))


def with_error(strata: Sequence[Numbers]) -> Estimate:
    """Mean over the runs of all strata, with its standard error: that of a mean of so many runs of each stratum."""
    values = np.concatenate(strata)
    centre = values.mean(axis=0)
    error = np.full(centre.shape, np.nan)
    if _spread_is_known(strata):
        error = np.sqrt(sum(len(runs) * runs.var(axis=0, ddof=1) for runs in strata)) / len(values)
    return Estimate(centre, centre - error, centre + error, np.full(centre.shape, len(values)))


def _spread_is_known(strata: Sequence[Numbers]) -> bool:
    """Not where a stratum has a single run: its interval is NaN."""
    return all(len(runs) > 1 for runs in strata)


_ESTIMATES: dict[Stat, Callable[[Sequence[Numbers]], Estimate]] = {"iqm": with_interval, "mean": with_error}


def estimate(values: Numbers, stat: Stat) -> Estimate:
    """The statistic of each column over the runs (rows) that have it; NaN: a run does not, as where it has ended."""
    present = ~np.isnan(values)
    centre, low, high = np.full((3, values.shape[1]), np.nan)
    patterns, which = np.unique(present, axis=1, return_inverse=True)
    for i, rows in enumerate(patterns.T):
        here = np.flatnonzero(which == i)
        if rows.any():
            part = _ESTIMATES[stat]([values[np.ix_(rows, here)]])
            centre[here], low[here], high[here] = part[:3]
    return Estimate(centre, low, high, present.sum(axis=0))


def over_tasks(tasks: Sequence[Sequence[float]], stat: Stat) -> Estimate:
    """The statistic of one number per run, over the runs of several tasks; each task is a stratum."""
    return _ESTIMATES[stat]([np.array(task, float)[:, None] for task in tasks])


def common_grid(series: Sequence[Series]) -> Numbers:
    """Steps at which runs can be compared: all at which any was measured or, if those are many, evenly spaced ones."""
    steps = np.unique(np.concatenate([s.steps for s in series])) if series else np.zeros(0)
    return steps if len(steps) <= POINTS else np.linspace(steps[0], steps[-1], POINTS)


def on_grid(series: Sequence[Series], grid: Numbers) -> Numbers:
    """Each run (row) at each step of the grid, linear between its own; NaN before its first and after its last."""
    if not series:
        return np.zeros((0, len(grid)))
    return np.stack([np.interp(grid, s.steps, s.values, left=np.nan, right=np.nan) for s in series])


def average(series: Series, last: float = np.inf) -> float:
    """The area under the curve by the steps it spans: its mean over the run, or over its steps up to `last`."""
    last = max(series.steps[0], min(last, series.steps[-1]))
    before = series.steps < last
    steps, values = np.append(series.steps[before], last), series.values[before]
    values = np.append(values, np.interp(last, series.steps, series.values))
    span = steps[-1] - steps[0]
    return float(np.trapezoid(values, steps) / span) if span else float(values[-1])
