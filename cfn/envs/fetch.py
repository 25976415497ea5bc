"""Fetch manipulation tasks of Section 4.4, with the paper's fixed starts and goals (Plappert et al., 2018)."""

from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np

from cfn.envs.mujoco import SparseTask, register_tasks
from cfn.types import Array, Positive, PositiveFloat

Offset = tuple[float, float, float]


class Task(NamedTuple):
    """A task and its fixed modes; positions are offsets in metres from the gripper's initial position.

    Attributes:
        id: Gymnasium id, from gymnasium-robotics.
        size: Dimensions of an observation, including the goal.
        object: Start (x, y) of the object; None if the task has no object.
        goals: Goal (x, y, z) by mode; with an object, z is relative to the object's height.
    """

    id: str
    size: int
    object: tuple[float, float] | None
    goals: dict[str, Offset]


def _goals(easy: Offset, medium: Offset, hard: Offset) -> dict[str, Offset]:
    return {"easy": easy, "medium": medium, "hard": hard}


TASKS = {
    "reach": Task("FetchReach-v4", 13, None, _goals((-0.05, 0.05, 0.025), (-0.1, 0.1, 0.5), (-0.15, 0.15, 0.75))),
    "push": Task("FetchPush-v4", 28, (-0.1, 0.1), _goals((-0.05, 0.05, 0), (0.025, -0.025, 0), (0.1, -0.1, 0))),
    "slide": Task("FetchSlide-v4", 28, (-0.05, 0.05), _goals((-0.25, -0.1, 0), (0, -0.1, 0), (0.25, 0.1, 0))),
    "pick_and_place": Task(
        "FetchPickAndPlace-v4", 28, (0.05, 0.05), _goals((-0.05, -0.05, 0.1), (-0.05, -0.05, 0.2), (-0.05, -0.05, 0.4))
    ),
}


class Fetch(SparseTask):
    """A robot arm moves its gripper to a goal, or pushes, slides or lifts an object to a goal.

    An observation is gymnasium-robotics' observation followed by the goal: 28 numbers (`reach`: 13). The true state is
    the position of the object, or of the gripper in `reach`.

    Args:
        task: Name of the task.
        mode: `default` samples object and goal in each episode; `easy`, `medium` and `hard` fix both.
        max_steps: Steps until truncation.
        bin: Width of the bins of the true state, in metres.
        render_mode: `rgb_array` or None.
    """

    def __init__(
        self,
        task: Literal["reach", "push", "slide", "pick_and_place"] = "push",
        mode: Literal["default", "easy", "medium", "hard"] = "default",
        max_steps: Positive = 50,
        bin: PositiveFloat = 0.025,
        render_mode: str | None = None,
    ) -> None:
        register_tasks()
        self._task, self._mode = TASKS[task], mode
        env = gym.make(self._task.id, render_mode=render_mode, disable_env_checker=True)
        super().__init__(env.unwrapped, self._task.size, max_steps, bin)

    def _reset_task(self, seed: int | None) -> Array:
        robot: Any = self._env
        observation, _ = robot.reset(seed=seed)
        if self._mode == "default":
            return self._joined(observation)
        gripper = robot.initial_gripper_xpos
        goal = gripper + np.array(self._task.goals[self._mode])
        if self._task.object is not None:
            joint = robot._utils.get_joint_qpos(robot.model, robot.data, "object0:joint")
            joint[:2] = gripper[:2] + np.array(self._task.object)
            robot._utils.set_joint_qpos(robot.model, robot.data, "object0:joint", joint)
            robot._mujoco.mj_forward(robot.model, robot.data)
            goal[2] = robot.height_offset + self._task.goals[self._mode][2]
            goal += robot.target_offset
        robot.goal = goal
        return self._joined(robot._get_obs())

    def _parse(self, observation: Any, info: dict[str, Any]) -> tuple[Array, bool]:
        return self._joined(observation), bool(info["is_success"])

    def _position(self, observation: Array) -> Array:
        return observation[:3] if self._task.object is None else observation[3:6]

    @staticmethod
    def _joined(observation: dict[str, Array]) -> Array:
        return np.concatenate([observation["observation"], observation["desired_goal"]])
