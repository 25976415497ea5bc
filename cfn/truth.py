"""The ground truth: how often each true state was visited, and an observation of each to ask the bonus about.

A visit is counted for s_t, the state an action was taken in, just when the bonus is told of it. A state in which every
episode ends is never acted in: it is among the states seen, but has no count.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from scipy import stats

from cfn.replay.growing import grow
from cfn.types import Array, Metrics, State

GROWTH = 2**14
"""States for which room is made at once, at the most."""
COLUMNS = ("state", "count", "true_bonus", "predicted_bonus")


class TrueCounts:
    """Visits per state, and the first observation of each.

    Args:
        observation_space: Of one environment.
        names: What the numbers of a state are called, if the environment says so.
    """

    def __init__(self, observation_space: gym.Space[Any], names: Sequence[str] = ()) -> None:
        self._room = names.index("room") if "room" in names else None
        assert observation_space.shape is not None
        self._index: dict[State, int] = {}
        self._counts = np.zeros(256, np.int64)
        self._examples = np.zeros((256, *observation_space.shape), observation_space.dtype)
        self._seen: set[State] = set()
        self._coin_sums: Array | None = None  # by state, for a bonus that flips coins

    def __len__(self) -> int:
        """How many states have a count."""
        return len(self._index)

    @property
    def seen(self) -> int:
        """How many distinct states were seen, those in which episodes ended among them."""
        return len(self._seen)

    @property
    def rooms(self) -> dict[int, Array]:
        """Of a game with rooms, those in which an action was taken, each with the first image that was seen of it."""
        rooms: dict[int, Array] = {}
        if self._room is not None:
            for row, state in enumerate(self._index):
                rooms.setdefault(state[self._room], self._examples[row])
        return rooms

    def arrive(self, states: Sequence[State] | None) -> None:
        """States that were seen, whether or not they will be acted in."""
        self._seen.update(states or ())

    def visit(self, states: Sequence[State] | None, observations: Array, flipped: Array | None = None) -> None:
        """Count one visit to each state; an environment that reports no states (None) is not counted.

        Args:
            states: True states.
            observations: What was seen of them.
            flipped: The coins that the bonus flipped for these visits, if it is one that does.
        """
        if states is None:
            return
        self._seen.update(states)
        for i, (state, observation) in enumerate(zip(states, observations, strict=True)):
            row = self._index.setdefault(state, len(self._index))
            if row == len(self._counts):
                for name in ("_counts", "_examples"):
                    grow(self, name, row + min(max(256, row), GROWTH))
            if self._counts[row] == 0:
                self._examples[row] = observation
            self._counts[row] += 1
            if flipped is not None:
                if self._coin_sums is None or len(self._coin_sums) < len(self._counts):
                    self._coin_sums = _sized(self._coin_sums, len(self._counts), flipped.shape[1])
                self._coin_sums[row] += flipped[i]

    @property
    def states(self) -> list[State]:
        """The visited states, in the order of their first visits."""
        return list(self._index)

    @property
    def counts(self) -> Array:
        """N(s) of each visited state."""
        return self._counts[: len(self)]

    @property
    def examples(self) -> Array:
        """An observation of each visited state."""
        return self._examples[: len(self)]

    @property
    def true_bonus(self) -> Array:
        """1 / sqrt(N(s)) of each visited state."""
        bonus: Array = self.counts**-0.5
        return bonus

    @property
    def floor(self) -> Array | None:
        """What a perfect coin-flip network would answer: the root mean square of each state's own mean coins.

        That mean is itself noisy, so even this answer differs from the true bonus; no coin-flip bonus can do better.
        None for a bonus that flips no coins.
        """
        if self._coin_sums is None:
            return None
        means = self._coin_sums[: len(self)] / self.counts[:, None]
        answer: Array = np.sqrt(np.mean(means**2, axis=1))
        return answer

    def write(self, path: Path, predicted: Array) -> None:
        """Write the table of visited states beside what the bonus says of them; a state's numbers are spaced."""
        path.parent.mkdir(exist_ok=True)
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            rows = zip(self.states, self.counts.tolist(), self.true_bonus.tolist(), predicted.tolist(), strict=True)
            writer.writerows((" ".join(map(str, s)), n, f"{true:.6g}", f"{b:.6g}") for s, n, true, b in rows)

    def state_dict(self) -> dict[str, Array]:
        """States, counts, examples and sums of coins, as arrays."""
        state = {"states": np.array(self.states), "counts": self.counts, "examples": self.examples}
        state["ends"] = np.array(sorted(self._seen - self._index.keys()))
        return state if self._coin_sums is None else state | {"coin_sums": self._coin_sums[: len(self)]}

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Take over states, counts, examples and sums of coins."""
        self._index = {tuple(key): row for row, key in enumerate(state["states"].tolist())}
        self._counts, self._examples = state["counts"].copy(), state["examples"].copy()
        self._seen = {*self._index, *map(tuple, state["ends"].tolist())}
        self._coin_sums = state["coin_sums"].copy() if "coin_sums" in state else None


def _sized(sums: Array | None, rows: int, columns: int) -> Array:
    larger = np.zeros((rows, columns), np.float64)
    if sums is not None:
        larger[: len(sums)] = sums
    return larger


def count_errors(predicted: Array, true: Array) -> Metrics:
    """How far a predicted bonus is from the true one, over visited states.

    `bonus/mse` is the paper's measure (Figure 3); `bonus/affine_mse` is what remains after the best a * predicted + b,
    so that only the shape counts; `bonus/spearman` compares the order alone, and is left out where it is not defined.
    """
    centred, target = predicted - predicted.mean(), true - true.mean()
    variance = float(centred @ centred)
    slope = float(centred @ target) / variance if variance > 0 else 0.0
    metrics = {
        "bonus/mse": float(np.mean((predicted - true) ** 2)),
        "bonus/affine_mse": float(np.mean((target - slope * centred) ** 2)),
    }
    if np.ptp(predicted) > 0 and np.ptp(true) > 0:
        metrics["bonus/spearman"] = float(stats.spearmanr(predicted, true).statistic)
    return metrics
