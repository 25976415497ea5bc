"""Normalisation of intrinsic rewards, which several bonuses share."""

from cfn.nn.running_stats import RunningStats
from cfn.types import Array


def normalized(novelty: Array, stats: RunningStats) -> Array:
    """Add novelty to running statistics, and return (B - running mean) / running variance (Appendix D.2)."""
    stats.update(novelty)
    result: Array = (novelty - stats.mean) / stats.variance
    return result
