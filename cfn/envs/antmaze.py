"""Ant in a U-shaped maze (Section 4.4): gymnasium-robotics' maze with the values of D4RL (Fu et al., 2020)."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from cfn.envs.mujoco import SparseTask, private_temporary_folder, register_tasks
from cfn.types import Array, Positive, PositiveFloat

TORQUE = 30  # newton metres at action 1; Gymnasium's ant: 150
TIME_STEP = 0.02  # seconds; five time steps per action; Gymnasium's ant: 0.01
CONTACTS = {"solref": ".02 1", "solimp": ".8 .8 .01"}  # MuJoCo's contact solver
JOINT_NOISE = 0.1  # at reset: bound of the uniform noise of qpos, standard deviation of the normal noise of qvel
CELLS = {"reset_cell": np.array([3, 1]), "goal_cell": np.array([1, 1])}
ORIGIN = np.array([4.0, 4.0])  # D4RL's xy minus gymnasium-robotics' xy; the ant starts at (0, 0) in D4RL's
GOAL = np.array([0.0, 8.0])
GOAL_NOISE = (1.0, 0.5)  # D4RL adds U(0, 1) + U(0, 0.5) to each coordinate of the goal
GOAL_RADIUS = 0.5  # metres
CAMERA = {"lookat": np.array([0.0, 0.0, 0.0]), "distance": 22.0, "azimuth": 90.0, "elevation": -60.0}
SIZE = 29  # dimensions of an observation: xy, 13 more positions, 14 velocities


class AntMaze(SparseTask):
    """A four-legged robot walks around the U to a goal near (0, 8); the reward is 1 within 0.5 metres of the goal.

    An observation is (x, y) and 27 positions and velocities of the ant. It does not contain the goal, which varies
    slightly between runs or episodes. An episode continues when the ant falls on its back. The true state is (x, y).

    Args:
        max_steps: Steps until truncation.
        bin: Width of the bins of the true state, in metres.
        goal: How often the goal is drawn: once per run, for training and evaluations alike, as in D4RL's
            antmaze-umaze-v0; or in every episode, as in antmaze-umaze-v2.
        run_seed: Seed of the goal of a run; None: an unpredictable one.
        render_mode: `rgb_array` or None.
    """

    def __init__(
        self,
        max_steps: Positive = 1000,
        bin: PositiveFloat = 0.2,
        goal: Literal["run", "episode"] = "episode",
        run_seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        register_tasks()
        with private_temporary_folder() as folder:
            env: Any = gym.make(
                "AntMaze_UMaze-v5",
                xml_file=str(_write_ant(folder)),
                continuing_task=False,
                include_cfrc_ext_in_observation=False,
                render_mode=render_mode,
                default_camera_config=CAMERA,
                camera_id=-1,  # the free camera, which shows the whole maze
                disable_env_checker=True,
            ).unwrapped
        env.position_noise_range = 0.0  # replaced by D4RL's noise
        env.ant_env._reset_noise_scale = JOINT_NOISE
        super().__init__(env, SIZE, max_steps, bin)
        self._goal_of_run = _draw_goal(np.random.default_rng(run_seed)) if goal == "run" else None
        self.goal_xy = GOAL

    def _reset_task(self, seed: int | None) -> Array:
        maze: Any = self._env
        observation, _ = maze.reset(seed=seed, options=CELLS)
        self.goal_xy = _draw_goal(self.np_random) if self._goal_of_run is None else self._goal_of_run
        maze.goal = self.goal_xy - ORIGIN
        maze.update_target_site_pos()
        return self._joined(observation)

    def _parse(self, observation: Any, info: dict[str, Any]) -> tuple[Array, bool]:
        array = self._joined(observation)
        return array, bool(np.linalg.norm(array[:2] - self.goal_xy) <= GOAL_RADIUS)

    def _position(self, observation: Array) -> Array:
        return observation[:2]

    @staticmethod
    def _joined(observation: dict[str, Array]) -> Array:
        return np.concatenate([observation["achieved_goal"] + ORIGIN, observation["observation"][: SIZE - 2]])


def _draw_goal(rng: np.random.Generator) -> Array:
    """Return a goal (x, y), in D4RL's coordinates."""
    return GOAL + sum(rng.uniform(0, width, 2) for width in GOAL_NOISE)


def _write_ant(folder: Path) -> Path:
    """Write Gymnasium's ant with D4RL's torques, time step and contacts, and return the path."""
    from gymnasium.envs.mujoco import ant_v5

    tree = ElementTree.parse(Path(ant_v5.__file__).parent / "assets" / "ant.xml")
    _find(tree, "option").set("timestep", str(TIME_STEP))
    _find(tree, "default/geom").attrib.update(CONTACTS)
    for motor in tree.iterfind("actuator/motor"):
        motor.set("gear", str(TORQUE))
    path = folder / "ant.xml"
    tree.write(path)
    return path


def _find(tree: "ElementTree.ElementTree[ElementTree.Element]", path: str) -> ElementTree.Element:
    element = tree.find(path)
    if element is None:
        raise RuntimeError(f"Gymnasium's ant.xml has no element {path}: install an older version of gymnasium")
    return element
