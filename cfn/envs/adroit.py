"""Adroit hand: four tasks of Section 4.4, with the paper's fixed starts and goals (Rajeswaran et al., 2018)."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np

from cfn.envs.mujoco import SparseTask, register_tasks
from cfn.types import Array, Positive, PositiveFloat

PEN_DROPPED = 0.075
"""Height below which the pen counts as dropped, in metres."""
TABLE = 0.45
"""Half of the side of the table in `relocate`, centred at the origin, in metres."""


def _fix_pen(hand: Any, euler: tuple[float, float, float]) -> None:
    from gymnasium_robotics.utils.rotations import euler2quat

    hand.model.body_quat[hand.target_obj_body_id] = euler2quat(np.array(euler))


def _fix_door(hand: Any, frame: tuple[float, float, float]) -> None:
    hand.model.body_pos[hand.door_body_id] = frame


def _fix_hammer(hand: Any, board_height: float) -> None:
    hand.model.body_pos[hand.target_body_id, 2] = board_height


def _fix_relocate(hand: Any, places: tuple[tuple[float, float], tuple[float, float, float]]) -> None:
    ball, target = places
    hand.model.body_pos[hand.obj_body_id, :2] = ball
    hand.model.site_pos[hand.target_obj_site_id] = target


class Task(NamedTuple):
    """A task and its fixed modes.

    Attributes:
        id: Gymnasium id, from gymnasium-robotics.
        size: Dimensions of an observation.
        fix: Function that writes the start and goal of a mode into the MuJoCo model.
        modes: Values for `fix`, by mode.
    """

    id: str
    size: int
    fix: Callable[[Any, Any], None]
    modes: dict[str, Any]


TASKS = {
    "pen": Task(  # modes: the pen's goal orientation, in Euler angles
        "AdroitHandPenSparse-v1", 45, _fix_pen, {"easy": (0, 1, 0), "medium": (-1, 0, 0), "hard": (-1, -1, 0)}
    ),
    "door": Task(  # modes: position of the door's frame, in metres
        "AdroitHandDoorSparse-v1",
        39,
        _fix_door,
        {"easy": (-0.25, 0.25, 0.35), "medium": (-0.25, 0.3, 0.35), "hard": (-0.25, 0.35, 0.35)},
    ),
    "hammer": Task(  # modes: height of the nail's board, in metres
        "AdroitHandHammerSparse-v1", 46, _fix_hammer, {"easy": 0.1, "medium": 0.175, "hard": 0.25}
    ),
    "relocate": Task(  # modes: start (x, y) and goal of the ball, in metres
        "AdroitHandRelocateSparse-v1",
        39,
        _fix_relocate,
        {
            "easy": ((0, 0.075), (0, 0, 0.15)),
            "medium": ((-0.15, -0.15), (0, 0, 0.25)),
            "hard": ((-0.15, -0.15), (0.2, 0.2, 0.35)),
        },
    ),
}


class Adroit(SparseTask):
    """A hand with 24 joints turns a pen, opens a door, drives in a nail or carries a ball.

    The true state is the position of the object: the pen, the door's handle, the hammer or the ball. A dropped pen
    terminates the episode, as in D4RL. A ball that leaves the table truncates it, as in the paper.

    Args:
        task: Name of the task.
        mode: `default` samples start and goal in each episode; `easy`, `medium` and `hard` fix both.
        max_steps: Steps until truncation.
        bin: Width of the bins of the true state, in metres.
        render_mode: `rgb_array` or None.
    """

    def __init__(
        self,
        task: Literal["pen", "door", "hammer", "relocate"] = "pen",
        mode: Literal["default", "easy", "medium", "hard"] = "medium",
        max_steps: Positive = 200,
        bin: PositiveFloat = 0.025,
        render_mode: str | None = None,
    ) -> None:
        register_tasks()
        self._name, self._task, self._mode = task, TASKS[task], mode
        env = gym.make(self._task.id, render_mode=render_mode, disable_env_checker=True)
        super().__init__(env.unwrapped, self._task.size, max_steps, bin)

    def _reset_task(self, seed: int | None) -> Array:
        hand: Any = self._env
        observation, _ = hand.reset(seed=seed)
        if self._mode == "default":
            return np.asarray(observation)
        self._task.fix(hand, self._task.modes[self._mode])
        hand.set_state(hand.init_qpos, hand.init_qvel)  # applies the changed model to the physics
        return np.asarray(hand._get_obs())

    def _parse(self, observation: Any, info: dict[str, Any]) -> tuple[Array, bool]:
        return observation, bool(info["success"])

    def _position(self, observation: Array) -> Array:
        hand: Any = self._env
        if self._name == "door":
            return np.asarray(hand.data.site_xpos[hand.handle_site_id])
        return np.asarray(hand.data.xpos[hand.obj_body_id])

    def _early_end(self) -> tuple[bool, bool]:
        x, y, z = self._position(self._last)
        dropped = self._name == "pen" and z < PEN_DROPPED
        left_table = self._name == "relocate" and max(abs(x), abs(y)) > TABLE  # the published code terminates instead
        return bool(dropped), bool(left_table)
