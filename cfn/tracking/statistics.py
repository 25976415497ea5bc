"""Sums over steps that become one row of metrics: an episode's return, the mean loss since the last row."""

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from cfn import device
from cfn.errors import UsageError
from cfn.types import Array, Metrics

Value = TypeVar("Value", float, float | Tensor)


def finite(step: int, metrics: Mapping[str, Value]) -> dict[str, Value]:
    """The metrics as plain numbers, or the end of the run if one of them is not a number any more.

    What is still on a device is left there, and is a plain number once its mean is taken.
    """
    plain: dict[str, Value] = {}
    for name, value in metrics.items():
        waits = isinstance(value, Tensor) and device.asynchronous(value.device)
        if not waits and not math.isfinite(value):
            group = name.partition("/")[0]
            advice = f"; a smaller {group}.lr may help" if name.endswith("/loss") else ""
            raise UsageError(
                f"{name} is {float(value)} at step {step:,}: the run stops, what was written is kept{advice}"
            )
        plain[name] = value if waits or isinstance(value, int) else float(value)
    return plain


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
        self.drop(ended)
        return metrics

    def drop(self, which: Array) -> None:
        """Forget what was added up of the current episodes of these environments."""
        for sums in (self._return, self._bonus, self._length):
            sums[which] = 0

    def state_dict(self) -> dict[str, Any]:
        """The sums of the episodes that have not ended, and how many have."""
        return {"sums": [self._return, self._bonus, self._length], "episodes": self._episodes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over all of it."""
        self._return, self._bonus, self._length = (sums.copy() for sums in state["sums"])
        self._episodes = state["episodes"]


class Means:
    """Running means by name."""

    def __init__(self) -> None:
        self._sums: dict[str, float | Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, metrics: device.Measured) -> None:
        """Take in one value of each metric."""
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def look(self) -> Metrics:
        """The means since they were last taken, which waits for what is still on a device."""
        return {name: float(total) / self._counts[name] for name, total in self._sums.items()}

    def take(self) -> Metrics:
        """The same, and begin anew."""
        means = self.look()
        self._sums.clear()
        self._counts.clear()
        return means

    def state_dict(self) -> dict[str, Any]:
        """Sums and counts."""
        return {"sums": dict(self._sums), "counts": dict(self._counts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over sums and counts."""
        sums, counts = state["sums"], state["counts"]
        self._sums = {name: total if isinstance(total, Tensor) else float(total) for name, total in sums.items()}
        self._counts = {name: int(counts[name]) for name in sums}
