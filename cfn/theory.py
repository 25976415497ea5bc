"""The theory behind counting by coin flips (Section 3.1 and Appendices A and B), as functions to compute with."""

import numpy as np

from cfn.types import Array


def variance_of_inverse_count(n: int, fourth_moment: float = 1.0, d: int = 1) -> float:
    """Var[|z_n|^2 / d], the variance of the estimate of 1 / n from n visits with d flips each.

    E[X^4] / n^3 + 2 / n^2 - 3 / n^3 for flips of mean 0 and variance 1 with this fourth moment (Appendix A), over d.
    It is lowest for coins, whose fourth moment, 1, is the least that a variance of 1 allows.
    """
    return (fourth_moment / n**3 + 2 / n**2 - 3 / n**3) / d


def linear_inverse_count(states: Array, state: Array) -> float:
    """E[1 / N(s)] of a linear Coin Flip Network trained to the end on `states`: p (L'L)^-1 p' (Appendix B).

    p is the state in the basis of the right singular vectors of the matrix of visited states, one visit a row, and
    L its singular values. One-hot states give tabular counts.
    """
    _, singular_values, basis = np.linalg.svd(states, full_matrices=False)
    p = basis @ state
    return float(np.sum((p / singular_values) ** 2))
