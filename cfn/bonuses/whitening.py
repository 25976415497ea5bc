"""Inputs of distilled networks: observations normalised by their running mean and standard deviation, and clipped."""

import numpy as np

from cfn.nn.running_stats import RunningStats
from cfn.types import Array

CLIP = 5.0
"""Maximum absolute value of normalised inputs."""


def as_floats(observations: Array) -> Array:
    """Return observations as numbers; bytes of images become 0 to 1."""
    floats: Array = observations / 255.0 if observations.dtype == np.uint8 else observations
    return floats


def whitened(observations: Array, stats: RunningStats) -> Array:
    """Return observations minus their running mean, divided by the running standard deviation, clipped."""
    normalized = (as_floats(observations) - stats.mean) / np.sqrt(stats.variance + 1e-8)
    inputs: Array = np.clip(normalized, -CLIP, CLIP).astype(np.float32)
    return inputs
