"""From observations and novelty to rewards: steps that several bonuses share."""

import numpy as np

from cfn.errors import UsageError
from cfn.nn.running_stats import RunningStats
from cfn.types import Array


def require_finite(observations: Array) -> None:
    """Raise `UsageError` if an observation has NaN or infinity."""
    if observations.dtype != np.uint8 and not np.isfinite(observations).all():
        raise UsageError("an observation has NaN or infinity, which no bonus can learn from: fix the environment")


def normalized(novelty: Array, stats: RunningStats) -> Array:
    """Add novelty to running statistics, and return (B - running mean) / running variance (Appendix D.2)."""
    stats.update(novelty)
    result: Array = (novelty - stats.mean) / stats.variance
    return result
