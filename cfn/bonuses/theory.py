"""Theory of counting with coin flips (Section 3.1 and Appendices A and B), as functions."""

import numpy as np

from cfn.types import Array


def variance_of_inverse_count(n: int, fourth_moment: float = 1.0, d: int = 1) -> float:
    """Return Var[|z_n|^2 / d], the variance of the estimate of 1 / n from n visits with d flips each.

    For flips X with mean 0 and variance 1 it is (E[X^4] / n^3 + 2 / n^2 - 3 / n^3) / d (Appendix A). Coins have the
    lowest variance: their fourth moment is 1, the minimum for distributions with variance 1.

    Args:
        n: Number of visits.
        fourth_moment: E[X^4] of the flips.
        d: Number of flips per visit.
    """
    return (fourth_moment / n**3 + 2 / n**2 - 3 / n**3) / d


def linear_inverse_count(states: Array, state: Array) -> float:
    """Return E[1 / N(s)] of a linear Coin Flip Network trained to convergence: p (L'L)^-1 p' (Appendix B).

    p is the state in the basis of the right singular vectors of the matrix of visited states, and L are its singular
    values. One-hot states give tabular counts.

    Args:
        states: Visited states, one row per visit.
        state: State to estimate.
    """
    _, singular_values, basis = np.linalg.svd(states, full_matrices=False)
    p = basis @ state
    return float(np.sum((p / singular_values) ** 2))
