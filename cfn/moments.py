"""Running means and variances, of priors, observations and bonuses."""

from typing import Any

import numpy as np

from cfn.types import Array


class RunningMoments:
    """Mean and variance of all that was seen, as if `initial_variance` around 0 had been seen once before.

    Args:
        shape: Of one sample.
        initial_variance: Before anything is seen.
    """

    def __init__(self, shape: tuple[int, ...] = (), initial_variance: float = 1.0) -> None:
        self.mean = np.zeros(shape)
        self.variance = np.full(shape, initial_variance)
        self.count = 1.0

    def update(self, samples: Array) -> None:
        """Take in a batch of samples, exactly as if they had come one by one (Chan et al.'s parallel formula)."""
        n = len(samples)
        if n == 0:
            return
        total = self.count + n
        mean = samples.mean(axis=0, dtype=np.float64)
        shift = mean - self.mean
        squares = self.variance * self.count + samples.var(axis=0, dtype=np.float64) * n
        self.variance = (squares + shift**2 * (self.count * n / total)) / total
        self.mean = self.mean + shift * (n / total)
        self.count = total

    def state_dict(self) -> dict[str, Any]:
        """Mean, variance and count."""
        return {"mean": np.copy(self.mean), "variance": np.copy(self.variance), "count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over mean, variance and count."""
        self.mean, self.variance, self.count = np.copy(state["mean"]), np.copy(state["variance"]), state["count"]
