"""Statistics that become rows of metrics: returns of episodes, and mean losses since the last row."""

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from cfn.errors import UsageError
from cfn.nn import device
from cfn.types import Array, Metrics

Value = TypeVar("Value", float, float | Tensor)


def finite(step: int, metrics: Mapping[str, Value]) -> dict[str, Value]:
    """Return metrics as plain numbers; raise `UsageError` if one of them is NaN or infinite.

    Values on an asynchronous device stay there unchecked; they are checked when their mean is taken.
    """
    plain: dict[str, Value] = {}
    for name, value in metrics.items():
        on_device = isinstance(value, Tensor) and device.asynchronous(value.device)
        if not on_device and not math.isfinite(value):
            group = name.partition("/")[0]
            advice = f"; a smaller {group}.lr may help" if name.endswith("/loss") else ""
            raise UsageError(f"{name} is {float(value)} at step {step:,}: the run stops; its files are kept{advice}")
        plain[name] = value if on_device or isinstance(value, int) else float(value)
    return plain


class EpisodeStatistics:
    """Return, length and bonus of the current episode of each environment.

    Args:
        num_envs: Number of environments.
    """

    def __init__(self, num_envs: int) -> None:
        self._return = np.zeros(num_envs)
        self._bonus = np.zeros(num_envs)
        self._length = np.zeros(num_envs, np.int64)
        self._episodes = 0

    def add(self, rewards: Array, bonuses: Array, ended: Array) -> Metrics:
        """Add one step.

        Args:
            rewards: Raw extrinsic rewards.
            bonuses: Intrinsic rewards.
            ended: Whether each episode ended with this step.

        Returns:
            Means over the episodes that ended (raw return, length, intrinsic reward per step) and the number of
            episodes so far; empty if none ended.
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
        """Reset the statistics of the current episodes of some environments (True)."""
        for sums in (self._return, self._bonus, self._length):
            sums[which] = 0

    def state_dict(self) -> dict[str, Any]:
        return {"sums": [self._return, self._bonus, self._length], "episodes": self._episodes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._return, self._bonus, self._length = (sums.copy() for sums in state["sums"])
        self._episodes = state["episodes"]


class Means:
    """Means of metrics since the last row."""

    def __init__(self) -> None:
        self._sums: dict[str, float | Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, metrics: device.Measured) -> None:
        """Add one value of each metric."""
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def look(self) -> Metrics:
        """Return the means since the last `take`; waits for values that are still on a device."""
        return {name: float(total) / self._counts[name] for name, total in self._sums.items()}

    def take(self) -> Metrics:
        """Return the means since the last `take`, and reset them."""
        means = self.look()
        self._sums.clear()
        self._counts.clear()
        return means

    def state_dict(self) -> dict[str, Any]:
        return {"sums": dict(self._sums), "counts": dict(self._counts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        sums, counts = state["sums"], state["counts"]
        self._sums = {name: total if isinstance(total, Tensor) else float(total) for name, total in sums.items()}
        self._counts = {name: int(counts[name]) for name in sums}
