"""Two-sample statistics: difference, probability of improvement and rank test of settings A and B, over tasks.

Each task has one number (a score) per run of A and per run of B. Intervals are 95% percentile bootstrap intervals: runs
are drawn with replacement within their own setting and task. Every task has the same weight, except in the rank test,
where its weight is the number of its pairs of runs.

The probability of improvement is the chance that a random run of A scores higher than a random run of B, with ties
counted as one half (Agarwal et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice, 2021). The
rank test is Mann and Whitney's. Of one task, U is the number of pairs of runs that A wins, again with ties as one half.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cfn.analysis.stats import RESAMPLES
from cfn.runs.reading import Numbers

FEW_SEEDS = 10
"""Below this number of seeds per setting, a percentile bootstrap interval is clearly too narrow."""
TOO_NARROW = (
    f"With fewer than {FEW_SEEDS} seeds, bootstrap intervals are too narrow: for 5 seeds of each with normally "
    "distributed scores, the 95% interval of the difference contains the true one in about 88% of all cases"
)

_SIGNIFICANT_DIGITS = 10
"""Digits to which scores are rounded: equal scores must not differ by rounding errors, because ties count."""
MAX_EXACT_RUNS = 100
"""Largest number of runs of a task, of A and B together, for which the p value is exact."""


class Samples(NamedTuple):
    """Scores of the runs of A and of B in one task."""

    a: Numbers
    b: Numbers


class Interval(NamedTuple):
    """A statistic and the bounds of its 95% interval; the bounds are NaN if any setting has a single run."""

    centre: float
    low: float
    high: float


class RankTest(NamedTuple):
    """Mann-Whitney U of A, and the two-sided p value."""

    u: float
    p: float


def samples(a: Sequence[float], b: Sequence[float]) -> Samples:
    """Return the scores of one task, rounded so that equal scores are ties."""
    rounded = ([float(f"{score:.{_SIGNIFICANT_DIGITS}g}") for score in scores] for scores in (a, b))
    return Samples(*(np.array(scores, float) for scores in rounded))


def difference(tasks: Sequence[Samples]) -> Interval:
    """Return the mean score of A minus that of B, averaged over tasks."""
    centre = np.mean([task.a.mean() - task.b.mean() for task in tasks])
    rng = np.random.default_rng(0)
    resampled = np.zeros(RESAMPLES)
    for task in tasks:
        a, b = (_resample(len(scores), rng) @ scores / len(scores) for scores in task)
        resampled += (a - b) / len(tasks)
    # Means that are equal may differ by rounding errors, and an interval then may not contain 0.
    smallest = 1e-9 * max(np.abs(scores).max() for task in tasks for scores in task)
    resampled[np.abs(resampled) <= smallest] = 0
    return _interval(0.0 if abs(centre) <= smallest else float(centre), resampled, tasks)


def improvement(tasks: Sequence[Samples]) -> Interval:
    """Return the probability of improvement of A over B, averaged over tasks."""
    centre, resampled = 0.0, np.zeros(RESAMPLES)
    rng = np.random.default_rng(0)
    for task in tasks:
        wins = (1 + np.sign(task.a[:, None] - task.b)) / 2  # of each run of A (rows) against each run of B (columns)
        centre += float(wins.mean()) / len(tasks)
        a, b = (_resample(len(scores), rng) for scores in task)
        resampled += ((a @ wins) * b).sum(axis=1) / (wins.size * len(tasks))
    return _interval(centre, resampled, tasks)


def rank_test(tasks: Sequence[Samples]) -> RankTest:
    """Return the Mann-Whitney test. Over several tasks, U is the sum of the tasks' U (a stratified test).

    The p value is the fraction of all assignments of the scores to A and B, within each task, for which U is at least
    as far from its mean as observed: it is exact, with ties as well. For more than `MAX_EXACT_RUNS` runs of a task it
    is that of the normal approximation, corrected for ties and continuity.
    """
    doubled = [_doubled_ranks(task) for task in tasks]  # integers: ranks of ties are half-integers
    pairs = sum(len(task.a) * len(task.b) for task in tasks)
    twice_u = sum(
        int(ranks[: len(task.a)].sum()) - len(task.a) * (len(task.a) + 1)
        for ranks, task in zip(doubled, tasks, strict=True)
    )
    far = abs(twice_u - pairs)  # twice the distance from the mean of U, which is pairs / 2
    if max(map(len, doubled)) <= MAX_EXACT_RUNS:
        chances = np.ones(1)
        for ranks, task in zip(doubled, tasks, strict=True):
            chances = np.convolve(chances, _distribution(ranks, len(task.a)))
        p = float(chances[np.abs(np.arange(len(chances)) - pairs) >= far].sum())
    else:
        variance = sum(_variance(ranks, len(task.a)) for ranks, task in zip(doubled, tasks, strict=True))
        distance = max(0.0, far / 2 - 0.5)
        p = math.erfc(distance / math.sqrt(2 * variance)) if variance else 1.0
    return RankTest(twice_u / 2, min(1.0, p))


def _resample(runs: int, rng: np.random.Generator) -> Numbers:
    """Return how often each run (column) is drawn in each resample (row)."""
    drawn = rng.integers(runs, size=(RESAMPLES, runs)) + runs * np.arange(RESAMPLES)[:, None]
    return np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape).astype(float)


def _interval(centre: float, resampled: Numbers, tasks: Sequence[Samples]) -> Interval:
    if min(len(scores) for task in tasks for scores in task) < 2:
        return Interval(centre, math.nan, math.nan)
    low, high = np.percentile(resampled, (2.5, 97.5))
    return Interval(centre, float(low), float(high))


def _doubled_ranks(task: Samples) -> npt.NDArray[np.int64]:
    """Return twice the rank of each score of A, then of B, among all of them; tied scores share their mean rank."""
    _, which, times = np.unique(np.concatenate(task), return_inverse=True, return_counts=True)
    doubled: npt.NDArray[np.int64] = (2 * np.cumsum(times) - times + 1)[which]
    return doubled


def _distribution(doubled_ranks: npt.NDArray[np.int64], runs: int) -> Numbers:
    """Return the probability of each value of 2 U (from 0) if any `runs` of the scores are equally likely A's."""
    total = int(np.sort(doubled_ranks)[-runs:].sum())
    ways = np.zeros((runs + 1, total + 1))  # number of subsets by size and by sum of doubled ranks
    ways[0, 0] = 1
    for rank in doubled_ranks:
        ways[1:, rank:] += ways[:-1, :-rank]
    least = runs * (runs + 1)
    chances = np.zeros(2 * runs * (len(doubled_ranks) - runs) + 1)
    chances[: total + 1 - least] = ways[runs, least:] / ways[runs].sum()
    return chances


def _variance(doubled_ranks: npt.NDArray[np.int64], runs: int) -> float:
    """Return the variance of U if any `runs` of the scores are equally likely A's."""
    number = len(doubled_ranks)
    return float(runs * (number - runs) / (number * (number - 1)) * np.sum((doubled_ranks - number - 1.0) ** 2) / 4)
