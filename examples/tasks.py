"""Sparse tasks of the examples, and their command line."""

import argparse
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.envs.gridworld import Gridworld


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
    [1, 1, 1, 1, 1],
    [1, "r", 0, 0, 1],
    [1, 1, 1, 0, 1],
    [1, "g", 0, 0, 1],
    [1, 1, 1, 1, 1],
]
"""Map of UMaze (1: wall), with start and goal at the two ends of the U."""


def sparse_point_maze(max_steps: int = 160, repeats: int = 4) -> gym.Env:
    """Return UMaze (gymnasium-robotics): a ball in a U-shaped corridor, a reward of 1 at its far end, 0 elsewhere.

    Start and goal are always the same, and reaching the goal ends the episode.

    Args:
        max_steps: Simulation steps until truncation.
        repeats: Simulation steps per action.
    """
    import gymnasium_robotics

    gym.register_envs(gymnasium_robotics)
    env = gym.make("PointMaze_UMaze-v3", maze_map=MAZE, continuing_task=False, max_episode_steps=max_steps)
    return RepeatAction(WithoutGoal(env), repeats)


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


class WithoutGoal(gym.ObservationWrapper):
    """Leaves out the entry of the goal, which never changes."""

    def __init__(self, env: gym.Env):
        super().__init__(env)
        self.observation_space = gym.spaces.Dict(
            {name: env.observation_space[name] for name in ("achieved_goal", "observation")}
        )

    def observation(self, observation: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return the position (`achieved_goal`), and position and velocity (`observation`)."""
        return {name: observation[name] for name in self.observation_space.spaces}


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
