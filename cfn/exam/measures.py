"""Statistics of answers: errors against 1 / sqrt(N), exponents of decay, AUC, geometric means, settling times."""

import numpy as np

from cfn.training.visit_counts import spearman
from cfn.types import Array

TINY = 1e-12
"""Smallest bonus whose logarithm is taken."""
MIN_SETTLED = 5
"""Number of ratios, from the first one near 1 to the end, below which a bonus does not count as settled."""


def errors(bonus: Array, counts: Array) -> dict[str, float]:
    """Return the mean squared error against 1 / sqrt(N), the slope of the regression on it, and Spearman's rho."""
    true = counts**-0.5
    centred = true - true.mean()
    varies = np.ptp(bonus) > 0 and np.ptp(true) > 0
    return {
        "mse": float(np.mean((bonus - true) ** 2)),
        "slope": float(centred @ bonus / (centred @ centred)) if np.ptp(true) > 0 else 0.0,
        "spearman": spearman(bonus, true) if varies else 0.0,
    }


def exponent(bonus: Array, counts: Array) -> float:
    """Return p of the fit B ~ N^-p, a line through the logarithms; 0 unless all values are positive."""
    if not (bonus > TINY).all() or np.ptp(counts) == 0:
        return 0.0
    return -float(np.polyfit(np.log(counts), np.log(bonus), 1)[0])


def separation(unseen: Array, seen: Array) -> float:
    """Return the AUC: the probability that an unseen state has a larger bonus than a seen one (ties count half)."""
    larger = (unseen[:, None] > seen[None]).mean()
    equal = (unseen[:, None] == seen[None]).mean()
    return float(larger + equal / 2)


def geometric_mean(values: Array) -> float:
    """Return the geometric mean; 0 if a value is not positive."""
    return float(np.exp(np.mean(np.log(values)))) if (values > TINY).all() else 0.0


def settled(ratios: Array, tolerance: float = 0.2, share: float = 0.9) -> int | None:
    """Return the first index from which on most ratios are near 1; None if there is none.

    Args:
        ratios: Ratios in order of time.
        tolerance: Largest distance from 1.
        share: Fraction of the ratios from the index on that must be near 1; below 1 because a bonus may be noisy.
    """
    within = np.abs(np.asarray(ratios) - 1) <= tolerance
    remaining = np.cumsum(within[::-1])[::-1] / np.arange(len(within), 0, -1)
    indices = np.flatnonzero(within & (remaining >= share))
    return int(indices[0]) if len(indices) and indices[0] <= len(within) - MIN_SETTLED else None
