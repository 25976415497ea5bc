"""Sparse tasks of the examples, and the learning curves that they write."""

import argparse
import csv
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from cfn.envs.gridworld import Gridworld

RECENT = 20
"""Number of training episodes that a point of a learning curve is the mean of."""


class VectorGridworld(gym.ObservationWrapper):
    """The gridworld of `cfn train`, observed as two one-hot vectors instead of an image: column and row.

    The only reward lies 40 steps from the start, and an episode has 75 steps: a random walk finds it in about one
    episode of a million.
    """

    def __init__(self, size: int = 21, max_steps: int = 75):
        super().__init__(Gridworld(size, size, max_steps=max_steps))
        self.observation_space = gym.spaces.Box(0, 1, (2 * size,), np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """Return the column and the row of the bright pixel."""
        return (np.concatenate([observation.max(axis=0), observation.max(axis=1)]) / 255).astype(np.float32)


def sparse_point_maze() -> gym.Env:
    """Return PointMaze (gymnasium-robotics): a ball in a U-shaped maze, a reward of 1 at the far end, 0 elsewhere.

    Start and goal are always the same, and reaching the goal ends the episode.
    """
    import gymnasium_robotics

    gym.register_envs(gymnasium_robotics)
    env = gym.make("PointMaze_UMaze-v3", maze_map=MAZE, continuing_task=False, max_episode_steps=200)
    return FixedCells(env)


MAZE = [
    [1, 1, 1, 1, 1, 1, 1],
    [1, "r", 0, 0, 0, 0, 1],
    [1, 1, 1, 1, 1, 0, 1],
    [1, "g", 0, 0, 0, 0, 1],
    [1, 1, 1, 1, 1, 1, 1],
]
"""A longer U than gymnasium-robotics has: a random policy turns back before the bend."""


class FixedCells(gym.ObservationWrapper):
    """Joins position and velocity; the goal never changes, so it is left out."""

    def __init__(self, env: gym.Env):
        super().__init__(env)
        self.observation_space = gym.spaces.Dict(
            {name: env.observation_space[name] for name in ("achieved_goal", "observation")}
        )

    def observation(self, observation: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return position, and position with velocity."""
        return {name: observation[name].astype(np.float64) for name in self.observation_space.spaces}


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


def arguments(steps: int) -> argparse.Namespace:
    """Return the arguments that the scripts share.

    Args:
        steps: Default of `--steps`.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--bonus", default="cfn", choices=["cfn", "rnd", "none"], help="none: the baseline")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--curve", type=Path, help="CSV file for the learning curve")
    return parser.parse_args()
