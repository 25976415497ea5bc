"""The ant in a U-shaped maze of Section 4.4, made equal to D4RL's antmaze-umaze (Fu et al., 2020)."""

import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.envs.mujoco import SparseTask, register_tasks
from cfn.types import Array, Positive, PositiveFloat

TORQUE = 30  # at action 1; gymnasium's ant: 150
TIME_STEP = 0.02  # seconds, five to an action; gymnasium's ant: 0.01
CONTACTS = {"solref": ".02 1", "solimp": ".8 .8 .01"}
JOINT_NOISE = 0.1  # at the start: qpos uniform within it, qvel normal with it
CELLS = {"reset_cell": np.array([3, 1]), "goal_cell": np.array([1, 1])}
ORIGIN = np.array([4.0, 4.0])  # D4RL's xy = gymnasium-robotics' xy + this: the ant begins at (0, 0)
GOAL = np.array([0.0, 8.0])
GOAL_NOISE = (1.0, 0.5)  # D4RL adds two uniform numbers, from 0 to these, to each coordinate of the goal
RADIUS = 0.5  # of the goal
CAMERA = {"lookat": np.array([0.0, 0.0, 0.0]), "distance": 22.0, "azimuth": 90.0, "elevation": -60.0}  # the whole maze
SIZE = 29  # xy, 13 more positions, 14 velocities


class AntMaze(SparseTask):
    """A four-legged robot that walks around the U to a goal near (0, 8); reward 1 within 0.5 of it.

    An observation is xy and the ant's 27 numbers; the goal, which varies a little from episode to episode as in D4RL's
    newest version, is not seen. An ant on its back goes on. The true state is (x, y).

    Args:
        max_steps: Steps until truncation.
        bin: Width of the true state's bins.
        render_mode: `rgb_array` or None.
    """

    def __init__(self, max_steps: Positive = 1000, bin: PositiveFloat = 0.2, render_mode: str | None = None) -> None:
        register_tasks()
        with _temporary_folder() as folder:  # gymnasium-robotics leaves a file there each time
            env: Any = gym.make(
                "AntMaze_UMaze-v5",
                xml_file=str(_write_ant(folder)),
                continuing_task=False,
                include_cfrc_ext_in_observation=False,
                render_mode=render_mode,
                default_camera_config=CAMERA,
                camera_id=-1,  # one that is free, not the ant's own
                disable_env_checker=True,
            ).unwrapped
        env.position_noise_range = 0.0  # D4RL's own noise is added instead
        env.ant_env._reset_noise_scale = JOINT_NOISE
        super().__init__(env, SIZE, max_steps, bin)
        self.goal = GOAL

    def _begin(self, seed: int | None) -> Array:
        maze: Any = self._env
        observation, _ = maze.reset(seed=seed, options=CELLS)
        self.goal = GOAL + sum(self.np_random.uniform(0, width, 2) for width in GOAL_NOISE)
        maze.goal = self.goal - ORIGIN
        maze.update_target_site_pos()
        return self._joined(observation)

    def _look(self, observation: Any, info: dict[str, Any]) -> tuple[Array, bool]:
        array = self._joined(observation)
        return array, bool(np.linalg.norm(array[:2] - self.goal) <= RADIUS)

    def _place(self, observation: Array) -> Array:
        return observation[:2]

    @staticmethod
    def _joined(observation: dict[str, Array]) -> Array:
        return np.concatenate([observation["achieved_goal"] + ORIGIN, observation["observation"][: SIZE - 2]])


def _write_ant(folder: Path) -> Path:
    """Gymnasium's ant with D4RL's torques, time step and contacts."""
    from gymnasium.envs.mujoco import ant_v5

    tree = ElementTree.parse(Path(ant_v5.__file__).parent / "assets" / "ant.xml")
    _element(tree, "option").set("timestep", str(TIME_STEP))
    _element(tree, "default/geom").attrib.update(CONTACTS)
    for motor in tree.iterfind("actuator/motor"):
        motor.set("gear", str(TORQUE))
    path = folder / "ant.xml"
    tree.write(path)
    return path


def _element(tree: "ElementTree.ElementTree[ElementTree.Element]", path: str) -> ElementTree.Element:
    element = tree.find(path)
    if element is None:
        raise RuntimeError(f"gymnasium's ant.xml has no {path}: this gymnasium is too new")
    return element


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A folder for temporary files that is the only one while it exists, and leaves nothing behind."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before
