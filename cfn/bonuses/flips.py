"""Drawing of coin flips: independent ones, and balanced ones that make the count of a state less noisy.

The mean z of a state's n coin vectors estimates 1 / n by |z|^2 / d. A new vector c changes it to
(n^2 |z|^2 + 2 n z.c + d) / (n + 1)^2 / d: all of the noise comes from z.c. Balanced flips keep z.c small. They draw
several candidates and keep the one that is most nearly orthogonal to f(s), the network's estimate of z. A candidate and
its negative are equally likely to be drawn and equally good, so each coin alone stays fair and the estimate unbiased,
whatever f(s) is (`cfn.bonuses.theory`).
"""

from typing import Literal

import numpy as np

from cfn.types import Array

Flips = Literal["rademacher", "balanced", "gaussian", "zero"]
"""Distributions of the flips."""
CANDIDATES = 128
"""Number of candidates for a balanced flip: 1 / 5,000 of the noise remains (`theory.balanced_share`)."""


def are_coins(flips: Flips) -> bool:
    """Return whether the flips are -1 or 1, so that a bit stores one."""
    return flips in ("rademacher", "balanced")


def draw(flips: Flips, rng: np.random.Generator, predictions: Array) -> Array:
    """Return one vector of flips per row.

    Args:
        flips: Distribution.
        rng: Source of randomness.
        predictions: f(s) of each row; where it is unknown, zeros: balanced flips are then independent ones.
    """
    shape = predictions.shape
    if flips == "balanced":
        return balanced(rng, predictions)
    if flips == "rademacher":
        return rng.integers(2, size=shape).astype(np.float32) * 2 - 1
    return rng.standard_normal(shape, np.float32) if flips == "gaussian" else np.zeros(shape, np.float32)


def balanced(rng: np.random.Generator, predictions: Array, candidates: int = CANDIDATES) -> Array:
    """Return coins that are nearly orthogonal to each row: of several random vectors, the most nearly orthogonal one.

    Args:
        rng: Source of randomness.
        predictions: f(s) of each row. Only its direction matters.
        candidates: Number of vectors to choose from.
    """
    rows, d = predictions.shape
    bits = rng.integers(256, size=(rows, candidates, -(-d // 8)), dtype=np.uint8)
    coins = np.unpackbits(bits, axis=2, count=d).astype(np.float32) * 2 - 1
    overlaps = np.abs(np.einsum("rcd,rd->rc", coins, predictions))
    chosen: Array = coins[np.arange(rows), overlaps.argmin(axis=1)]
    return chosen
