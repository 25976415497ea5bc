"""A ball in a maze of gymnasium-robotics, with a sparse reward: continuous control that costs little to simulate."""

from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np

from cfn.envs.mujoco import SparseTask, private_temporary_folder, register_tasks
from cfn.types import Array, Positive, PositiveFloat

Cell = tuple[int, int]  # row, column; row 0 is on top


class Maze(NamedTuple):
    """A maze and its fixed cells, two of those that are farthest apart along its corridors.

    Attributes:
        id: Gymnasium id, from gymnasium-robotics.
        start: Cell of the ball at the start.
        goal: Cell of the goal.
        max_steps: Step limit of the id, in simulation steps.
    """

    id: str
    start: Cell
    goal: Cell
    max_steps: int


MAZES = {
    "UMaze": Maze("PointMaze_UMaze-v3", (3, 1), (1, 1), 300),
    "Open": Maze("PointMaze_Open-v3", (3, 5), (1, 1), 300),
    "Medium": Maze("PointMaze_Medium-v3", (6, 5), (5, 1), 600),
    "Large": Maze("PointMaze_Large-v3", (7, 10), (7, 1), 800),
}
SIZE = 6  # numbers in an observation: position, velocity, goal


class PointMaze(SparseTask):
    """A ball is pushed to a goal; the reward is 1 within 0.45 metres of it, and ends the episode.

    An observation is (x, y), the velocity and the goal. The true state is (x, y). The map `Medium`, for example, is
    that of gymnasium-robotics' `PointMaze_Medium-v3`, which differs by default: goals and starts are drawn in each
    episode, reaching the goal does not end it, and an action takes one simulation step.

    Args:
        map: Name of the maze; its cells are one metre wide.
        mode: `fixed`: the ball starts at rest in the middle of a cell, as far from the goal as possible; `random`:
            start and goal are drawn in each episode.
        repeat: Simulation steps of 0.01 seconds per action.
        max_steps: Actions until truncation; None: as many as fit into gymnasium-robotics' limit for the map.
        bin: Width of the bins of the true state, in metres.
        render_mode: `rgb_array` or None.
    """

    def __init__(
        self,
        map: Literal["UMaze", "Open", "Medium", "Large"] = "Medium",
        mode: Literal["fixed", "random"] = "fixed",
        repeat: Positive = 4,
        max_steps: Positive | None = None,
        bin: PositiveFloat = 0.25,
        render_mode: str | None = None,
    ) -> None:
        register_tasks()
        self._maze, self._fixed, self._repeat = MAZES[map], mode == "fixed", repeat
        with private_temporary_folder():
            env: Any = gym.make(
                self._maze.id, continuing_task=False, render_mode=render_mode, disable_env_checker=True
            ).unwrapped
        if self._fixed:
            env.position_noise_range = 0.0
        super().__init__(env, SIZE, max_steps or max(1, self._maze.max_steps // repeat), bin)

    def _reset_task(self, seed: int | None) -> Array:
        cells = {"reset_cell": np.array(self._maze.start), "goal_cell": np.array(self._maze.goal)}
        observation, _ = self._env.reset(seed=seed, options=cells if self._fixed else None)
        return self._joined(observation)

    def _simulate(self, action: Array) -> tuple[Array, bool]:
        observation, success = super()._simulate(action)
        for _ in range(self._repeat - 1):
            if success:
                break
            observation, success = super()._simulate(action)
        return observation, success

    def _parse(self, observation: Any, info: dict[str, Any]) -> tuple[Array, bool]:
        return self._joined(observation), bool(info["success"])

    def _position(self, observation: Array) -> Array:
        return observation[:2]

    @staticmethod
    def _joined(observation: dict[str, Array]) -> Array:
        return np.concatenate([observation["observation"], observation["desired_goal"]])
