"""Sums over steps that become one row of metrics: an episode's return, the mean loss since the last row."""

import math

import numpy as np

from cfn.errors import UsageError
from cfn.types import Array, Metrics


def finite(step: int, metrics: Metrics) -> Metrics:
    """The metrics as plain numbers, or the end of the run if one of them is not a number any more."""
    for name, value in metrics.items():
        if not math.isfinite(value):
            group = name.partition("/")[0]
            advice = f"; a smaller {group}.lr may help" if name.endswith("/loss") else ""
            raise UsageError(
                f"{name} is {float(value)} at step {step:,}: the run stops, what was written is kept{advice}"
            )
    return {name: value if isinstance(value, int) else float(value) for name, value in metrics.items()}


class EpisodeStatistics:
    """Adds up what happens in each environment until its episode ends.

    Args:
        num_envs: How many environments run at once.
    """

    def __init__(self, num_envs: int) -> None:
        self._return = np.zeros(num_envs)
        self._bonus = np.zeros(num_envs)
        self._length = np.zeros(num_envs, np.int64)
        self._episodes = 0

    def add(self, rewards: Array, bonuses: Array, ended: Array) -> Metrics:
        """Add one step.

        Args:
            rewards: Extrinsic rewards, as the environment gave them.
            bonuses: Intrinsic rewards.
            ended: Which episodes ended with this step.

        Returns:
            If any ended, the means over those that did (raw return, length, intrinsic reward per step), and how many
            episodes have ended so far.
        """
        self._return += rewards
        self._bonus += bonuses
        self._length += 1
        if not ended.any():
            return {}
        self._episodes += int(ended.sum())
        metrics = {
            "train/episodes": self._episodes,
            "train/return": float(self._return[ended].mean()),
            "train/length": float(self._length[ended].mean()),
            "train/bonus": float((self._bonus[ended] / self._length[ended]).mean()),
        }
        for sums in (self._return, self._bonus, self._length):
            sums[ended] = 0
        return metrics


class Means:
    """Running means by name."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, metrics: Metrics) -> None:
        """Take in one value of each metric."""
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def take(self) -> Metrics:
        """The means since they were last taken."""
        means = {name: total / self._counts[name] for name, total in self._sums.items()}
        self._sums.clear()
        self._counts.clear()
        return means
