"""Sparse tasks of the examples, and their command line."""

import argparse
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.envs.gridworld import Gridworld

ROOMS = [
    "S....#.....",
    ".....#.....",
    "...........",
    ".....#.....",
    ".....#.....",
    "########.##",
    ".....#.....",
    "...........",
    ".....#.....",
    ".G...#.....",
    ".....#.....",
]
"""Map of `Rooms` (#: wall), with start S and goal G."""

MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0))


class Rooms(gym.Env):
    """Four rooms in a row that is bent to a U: a reward of 1 at the goal in the last room, 0 elsewhere.

    The goal is 24 steps from the start, through three doors and away from walls, so keeping a direction does not lead
    to it. Observations are two one-hot vectors: row and column. Actions are left, right, up and down; a move into a
    wall does nothing. Reaching the goal ends the episode.

    Args:
        max_steps: Steps until truncation.
    """

    def __init__(self, max_steps: int = 42):
        rows, columns = len(ROOMS), len(ROOMS[0])
        self.cells = [(y, x) for y in range(rows) for x in range(columns) if ROOMS[y][x] != "#"]
        self.start, self.goal = (next(cell for cell in self.cells if ROOMS[cell[0]][cell[1]] == mark) for mark in "SG")
        self.max_steps, self._rows = max_steps, rows
        self.observation_space = gym.spaces.Box(0, 1, (rows + columns,), np.float32)
        self.action_space = gym.spaces.Discrete(len(MOVES))

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Move the agent to the start."""
        super().reset(seed=seed)
        self._cell, self._steps = self.start, 0
        return self._observation(), {"state": self._cell}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move one cell, or stay if a wall is in the way."""
        self._cell, self._steps = self.moved(self._cell, int(action)), self._steps + 1
        found = self._cell == self.goal
        return self._observation(), float(found), found, self._steps >= self.max_steps, {"state": self._cell}

    def moved(self, cell: tuple[int, int], action: int) -> tuple[int, int]:
        """Return the cell to which an action leads."""
        y, x = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1]
        inside = 0 <= y < len(ROOMS) and 0 <= x < len(ROOMS[0])
        return (y, x) if inside and ROOMS[y][x] != "#" else cell

    def _observation(self) -> np.ndarray:
        vector = np.zeros(self.observation_space.shape, np.float32)
        vector[self._cell[0]] = vector[self._rows + self._cell[1]] = 1
        return vector


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


MAZE = [
    [1, 1, 1, 1, 1, 1],
    [1, "r", 0, 0, 1, 1],
    [1, 1, 1, 0, 1, 1],
    [1, 0, 0, 0, 1, 1],
    [1, 0, 1, 1, 1, 1],
    [1, 0, 0, 0, "g", 1],
    [1, 1, 1, 1, 1, 1],
]
"""Map of the point maze (1: wall), with start and goal at the two ends of an S."""


def sparse_point_maze(max_steps: int = 320, repeats: int = 10) -> gym.Env:
    """Return PointMaze (gymnasium-robotics) with the map `MAZE`: a ball, and a reward of 1 at the end of the corridor.

    The ball starts within 0.25 of the centre of its cell, and the goal is within 0.25 of the centre of another. The
    ball has reached it at a distance of 0.45, which ends the episode. A controller that knows the way needs about 240
    simulation steps.

    Args:
        max_steps: Simulation steps until truncation.
        repeats: Simulation steps per action.
    """
    import gymnasium_robotics

    gym.register_envs(gymnasium_robotics)
    env = gym.make("PointMaze_UMaze-v3", maze_map=MAZE, continuing_task=False, max_episode_steps=max_steps)
    return RepeatAction(PlaceCells(env), repeats)


class RepeatAction(gym.Wrapper):
    """Takes each action several times, and returns the sum of the rewards."""

    def __init__(self, env: gym.Env, repeats: int):
        super().__init__(env)
        self.repeats = repeats

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Repeat an action until the episode ends, at most `repeats` times."""
        total = 0.0
        for _ in range(self.repeats):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, info


class PlaceCells(gym.ObservationWrapper):
    """Describes the position by radial basis functions, 0.5 apart, with a width of 0.35.

    The entry `place` has these alone, and `observation` has position, velocity and `place`. A network of two raw
    coordinates changes slowly from place to place, and so do the bonus and the values that it can learn. The goal is
    left out.
    """

    def __init__(self, env: gym.Env):
        super().__init__(env)
        across = np.arange(-3.25, 3.5, 0.5)
        self.centres = np.stack(np.meshgrid(across, across), axis=-1).reshape(-1, 2)
        sizes = {"place": len(self.centres), "observation": 4 + len(self.centres)}
        self.observation_space = gym.spaces.Dict(
            {name: gym.spaces.Box(-np.inf, np.inf, (size,), np.float32) for name, size in sizes.items()}
        )

    def observation(self, observation: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return `place` and `observation`."""
        distances = np.square(observation["achieved_goal"] - self.centres).sum(axis=1)
        place = np.exp(-distances / (2 * 0.35**2)).astype(np.float32)
        both = np.concatenate([observation["observation"], place], dtype=np.float32)
        return {"place": place, "observation": both}


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
