"""True visit counts: how often each true state was visited, with one example observation of each.

A visit counts for s_t, the state in which an action was taken, when the bonus observes it. An arrival counts for
s_t+1, as in the figures of the paper: initial states are not arrived in, and a state in which every episode ends is
never acted in.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.replay.growing_arrays import grow
from cfn.runs.layout import COUNT_COLUMNS
from cfn.types import Array, Metrics, State

MAX_GROWTH = 2**14
"""Maximum number of states by which the arrays grow at once."""


class VisitCounts:
    """Number of visits to and of arrivals in each true state, and one example observation of it.

    Args:
        observation_space: Observations of one environment.
        names: Names of the numbers in a true state, if the environment gives them.
        pairs: Whether states end with the action taken: N(s, a) is counted instead of N(s).
    """

    def __init__(self, observation_space: gym.Space[Any], names: Sequence[str] = (), pairs: bool = False) -> None:
        self._pairs = pairs
        self._room_index = names.index("room") if "room" in names else None
        assert observation_space.shape is not None
        self._rows: dict[State, int] = {}
        self._counts, self._arrivals = (np.zeros(256, np.int64) for _ in range(2))
        self._examples = np.zeros((256, *observation_space.shape), observation_space.dtype)
        self._unseen_ends: set[State] = set()  # only from checkpoints of older versions

    def __len__(self) -> int:
        """Return the number of states with at least one visit or arrival."""
        return len(self._rows)

    @property
    def seen(self) -> int:
        """Number of distinct states visited or arrived in."""
        if self._pairs:
            return len({state[:-1] for state in self._rows})
        return len(self._rows) + len(self._unseen_ends)

    @property
    def rooms(self) -> dict[int, Array]:
        """First image of each room in which an action was taken; empty for environments without rooms."""
        rooms: dict[int, Array] = {}
        if self._room_index is not None:
            for state, row in self._rows.items():
                if self._counts[row]:
                    rooms.setdefault(state[self._room_index], self._examples[row])
        return rooms

    def visit(self, states: Sequence[State] | None, observations: Array) -> None:
        """Count one visit to each state, in which an action was taken.

        Args:
            states: True states; None if the environment reports none.
            observations: Observations of these states.
        """
        if states is None:
            return
        for state, observation in zip(states, observations, strict=True):
            row = self._row(state, observation)
            if self._counts[row] == 0:
                self._examples[row] = observation
            self._counts[row] += 1

    def arrive(self, states: Sequence[State] | None, observations: Array) -> None:
        """Count one arrival in each state, whether or not an action will be taken in it; arguments as for `visit`."""
        if states is None:
            return
        for state, observation in zip(states, observations, strict=True):
            row = self._row(state, observation)  # may replace the arrays, so it comes first
            self._arrivals[row] += 1

    def _row(self, state: State, observation: Array) -> int:
        row = self._rows.setdefault(state, len(self._rows))
        if row == len(self._counts):
            for name in ("_counts", "_arrivals", "_examples"):
                grow(self, name, row + min(max(256, row), MAX_GROWTH))
        if self._counts[row] == self._arrivals[row] == 0:
            self._examples[row] = observation
            self._unseen_ends.discard(state)
        return row

    @property
    def states(self) -> list[State]:
        """States with at least one visit or arrival, in the order in which they were first seen."""
        return list(self._rows)

    @property
    def counts(self) -> Array:
        """N(s), the visits to each of `states`; 0 where no action was ever taken."""
        return self._counts[: len(self)]

    @property
    def arrivals(self) -> Array:
        """Arrivals in each of `states`; 0 for an initial state that was never reached again."""
        return self._arrivals[: len(self)]

    @property
    def examples(self) -> Array:
        """One observation of each of `states`."""
        return self._examples[: len(self)]

    def write(self, path: Path, predicted: Array) -> None:
        """Write a count table: each state with its visits, true bonus, predicted bonus and arrivals.

        Args:
            path: Path of the table.
            predicted: B(s) of each of `states`.
        """
        path.parent.mkdir(exist_ok=True)
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COUNT_COLUMNS)
            rows = zip(self.states, self.counts.tolist(), predicted.tolist(), self.arrivals.tolist(), strict=True)
            for state, visits, bonus, arrivals in rows:
                true = f"{visits**-0.5:.6g}" if visits else ""
                writer.writerow((" ".join(map(str, state)), visits, true, f"{bonus:.6g}", arrivals))

    def state_dict(self) -> dict[str, Array]:
        return {
            "states": np.array(self.states),
            "counts": self.counts,
            "arrivals": self.arrivals,
            "examples": self.examples,
            "ends": np.array(sorted(self._unseen_ends)),
        }

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Restore a state. Older checkpoints have no arrivals, and only the names of states in which episodes ended."""
        self._rows = {tuple(key): row for row, key in enumerate(state["states"].tolist())}
        self._counts, self._examples = state["counts"].copy(), state["examples"].copy()
        self._arrivals = state["arrivals"].copy() if "arrivals" in state else np.zeros_like(self._counts)
        self._unseen_ends = set(map(tuple, state["ends"].tolist()))


def arrival_error(predicted: Array, arrivals: Array) -> Metrics:
    """Return `bonus/arrival_mse`: the error against 1 / sqrt(arrivals), over the states that were arrived in."""
    reached = arrivals > 0
    error = predicted[reached] - arrivals[reached] ** -0.5
    return {"bonus/arrival_mse": float(np.mean(error**2))} if reached.any() else {}


def bonus_errors(predicted: Array, counts: Array) -> Metrics:
    """Return the errors of a predicted bonus against 1 / sqrt(N(s)), over the states that were visited (N > 0).

    `bonus/mse` is the mean squared error. `bonus/affine_mse` is the error after the best affine fit
    a * predicted + b: it compares shapes only. `bonus/spearman` compares orders only; it is left out where undefined.
    """
    visited = counts > 0
    predicted, true = predicted[visited], counts[visited] ** -0.5
    centred, target = predicted - predicted.mean(), true - true.mean()
    variance = float(centred @ centred)
    slope = float(centred @ target) / variance if variance > 0 else 0.0
    metrics = {
        "bonus/mse": float(np.mean((predicted - true) ** 2)),
        "bonus/affine_mse": float(np.mean((target - slope * centred) ** 2)),
    }
    if np.ptp(predicted) > 0 and np.ptp(true) > 0:
        metrics["bonus/spearman"] = spearman(predicted, true)
    return metrics


def spearman(first: Array, second: Array) -> float:
    """Return Spearman's rank correlation of two arrays that are not constant.

    It equals that of SciPy, whose import would double the time that the package needs to start.
    """
    return float(np.corrcoef(_ranks(first), _ranks(second))[1, 0])


def _ranks(values: Array) -> Array:
    """Return ranks from 1; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks
