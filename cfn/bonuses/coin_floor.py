"""Floor of a coin-flip bonus: the error that even a perfect network has, because coin flips are noisy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cfn.replay.growing_arrays import grow
from cfn.types import Array, Metrics, State

MAX_GROWTH = 2**14
"""Maximum number of states by which the array of sums grows at once."""


class CoinTally:
    """Sums of the coins flipped in each true state. They serve evaluation only: the bonus does not read them.

    Args:
        d: Number of coins per visit.
    """

    def __init__(self, d: int) -> None:
        self._rows: dict[State, int] = {}
        self._sums = np.zeros((256, d))

    def add(self, states: Sequence[State], flips: Array) -> None:
        """Add the coins of one visit to each state."""
        for state, flip in zip(states, flips, strict=True):
            row = self._rows.setdefault(state, len(self._rows))
            if row == len(self._sums):
                grow(self, "_sums", row + min(max(256, row), MAX_GROWTH))
            self._sums[row] += flip

    def floor(self, states: Sequence[State], counts: Array) -> Array:
        """Return the bonus that a perfect network gives each state: the root mean square of the state's mean coins."""
        means = self._sums[[self._rows[state] for state in states]] / counts[:, None]
        bonus: Array = np.sqrt(np.mean(means**2, axis=1))
        return bonus

    def report(self, states: Sequence[State], counts: Array) -> Metrics:
        """Return `bonus/floor_mse`, the mean squared error of `floor`; nothing if the coins of a state are unknown."""
        if not all(state in self._rows for state in states):
            return {}
        return {"bonus/floor_mse": float(np.mean((self.floor(states, counts) - counts**-0.5) ** 2))}

    def state_dict(self) -> dict[str, Any]:
        return {"states": np.array(list(self._rows)), "sums": self._sums[: len(self._rows)]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if len(state["states"]) != len(state["sums"]) or state["sums"].shape[1:] != self._sums.shape[1:]:
            raise ValueError("the sums of coins have the wrong shape for their states or for bonus.d")
        self._rows = {tuple(key): row for row, key in enumerate(state["states"].tolist())}
        self._sums = state["sums"].astype(np.float64)
