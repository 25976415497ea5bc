"""Learning curves of Stable-Baselines3's algorithms, from the extrinsic returns of training episodes."""

import csv
from pathlib import Path

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

RECENT = 20
"""Number of training episodes that a point of a learning curve is the mean of."""


class LearningCurve(BaseCallback):
    """Writes the mean extrinsic return of the last training episodes to a CSV file.

    Args:
        path: File to write; None: no file.
        every: Steps between rows.
    """

    def __init__(self, path: Path | None, every: int = 500):
        super().__init__()
        self.path, self.every, self.rows = path, every, []
        self.returns: list[float] = []

    def _on_step(self) -> bool:
        self.returns += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        if self.num_timesteps // self.every > (self.rows[-1][0] // self.every if self.rows else 0):
            recent = self.returns[-RECENT:]
            self.rows.append((self.num_timesteps, float(np.mean(recent)) if recent else 0.0))
        return True

    def _on_training_end(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([("step", "return"), *self.rows])

    @property
    def last(self) -> float:
        """Mean extrinsic return of the last training episodes."""
        return float(np.mean(self.returns[-RECENT:])) if self.returns else 0.0
