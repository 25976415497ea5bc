"""Running mean and variance, of priors, observations and bonuses."""

from typing import Any

import numpy as np

from cfn.types import Array


class RunningStats:
    """Mean and variance of all samples so far, starting as if one sample with mean 0 and `initial_variance` was seen.

    Args:
        shape: Shape of a sample.
        initial_variance: Variance before the first sample.
    """

    def __init__(self, shape: tuple[int, ...] = (), initial_variance: float = 1.0) -> None:
        self.mean = np.zeros(shape)
        self.variance = np.full(shape, initial_variance)
        self.count = 1.0

    def update(self, samples: Array) -> None:
        """Add a batch of samples; the result equals adding them one by one (parallel formula of Chan et al.)."""
        n = len(samples)
        if n == 0:
            return
        total = self.count + n
        if n == 1:  # one environment: the sample is the mean, and its variance is 0
            mean, squares = samples[0].astype(np.float64), self.variance * self.count
        else:
            mean = samples.mean(axis=0, dtype=np.float64)
            squares = self.variance * self.count + samples.var(axis=0, dtype=np.float64) * n
        shift = mean - self.mean
        self.variance = (squares + shift**2 * (self.count * n / total)) / total
        self.mean = self.mean + shift * (n / total)
        self.count = total

    def state_dict(self) -> dict[str, Any]:
        return {"mean": np.copy(self.mean), "variance": np.copy(self.variance), "count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.mean, self.variance, self.count = np.copy(state["mean"]), np.copy(state["variance"]), state["count"]


class PublishedStats(RunningStats):
    """Recurrence of the published RND runs: mean += delta / t;  v = (v t + delta^2 t / (t + 1)) / (t + 1).

    t is 1 at the first sample: t = 0 would divide by zero. The first mean is then the sample itself, so the start has
    no weight in the mean. In the variance it has the weight of one sample, as in `RunningStats`.
    """

    def update(self, samples: Array) -> None:
        """Add samples one by one, in their order."""
        for sample in samples:
            t = self.count
            delta = sample - self.mean
            self.mean = self.mean + delta / t
            self.variance = (self.variance * t + delta**2 * (t / (t + 1))) / (t + 1)
            self.count = t + 1
