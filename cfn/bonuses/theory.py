"""Formulas of counting with coin flips: Section 3.1, Appendices A and B, and balanced flips."""

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


def balanced_share(cosine: float, d: int, candidates: int) -> float:
    """Return rho, the share of the variance that remains with balanced flips (`cfn.bonuses.flips`).

    The sum Z of a state's coin vectors changes by c, and |Z|^2 by 2 Z.c + d. The symmetry of c and -c gives E[Z.c] = 0,
    so |Z|^2 - n d is a martingale and E[|z_n|^2 / d] = 1 / n for *every* f that does not depend on c. A wrong f causes
    no bias. It decides about the variance: rho = E[(Z.c)^2] / |Z|^2 is 1 for independent coins. If c is balanced
    against f and otherwise without direction, only the angle between f and Z matters:

        rho = cos^2 * e + sin^2 * (d - e) / (d - 1),  e = pi / ((m + 1) (m + 2)),

    with e = E[(c.f)^2] / |f|^2, the smallest of m squared normal variables. With a perfect f almost nothing remains.
    With an f that knows nothing of the state, rho = d / (d - 1): 5% more variance than independent coins for d = 20.

    Args:
        cosine: Cosine of the angle between the prediction f and the true mean z.
        d: Number of flips per visit, at least 2.
        candidates: Number m of vectors to choose from.
    """
    overlap = np.pi / ((candidates + 1) * (candidates + 2))
    return float(cosine**2 * overlap + (1 - cosine**2) * (d - overlap) / (d - 1))


def variance_of_balanced_inverse_count(n: int, share: float, d: int = 1) -> float:
    """Return Var[|z_n|^2 / d] of balanced flips: the sum of 4 rho E|Z_k|^2 = 4 rho k d over k < n, by (n^2 d)^2.

    `share` is 1 for independent coins, where this is `variance_of_inverse_count`.

    Args:
        n: Number of visits.
        share: rho of `balanced_share`, the same at every visit.
        d: Number of flips per visit.
    """
    return share * 2 * (n - 1) / (n**3 * d)


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
