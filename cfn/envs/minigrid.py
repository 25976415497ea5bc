"""MiniGrid and BabyAI tasks (Chevalier-Boisvert et al., 2023) as images, with the true state of agent and doors."""

from typing import Any, Literal, SupportsFloat, cast

import gymnasium as gym
import numpy as np

from cfn.envs import registry
from cfn.errors import BadValueError, needs_extra
from cfn.types import Array, Positive, State

FACTORS = np.array([25, 51, 85], np.uint8)
"""Factors of the package's numbers of a cell: object (0 to 10), colour (0 to 5), state or direction (0 to 3).

They spread the numbers over the range of bytes, which networks divide by 255.
"""
COLOURS, DOOR_STATES = 6, 3


class MiniGrid(gym.Wrapper[Any, Any, Any, Any]):
    """An agent in a grid of rooms, doors and objects, with seven actions and a reward between 0 and 1 at the end.

    An observation is an image with three channels per cell: object, colour, and the state of a door or the direction
    of the agent. In the partial view, the agent looks upwards from the middle of the lowest row, and sees what it
    carries in its own cell. Missions, which are texts, are not observed.

    The true state is (x, y, direction, carried object, states of the doors). It does not contain the layout, nor
    where objects lie: with `layout=episode`, states of different layouts are counted together.

    Args:
        id: Gymnasium id of the package minigrid.
        view: `partial`: the cells in front of the agent, without those behind walls; `full`: the whole grid.
        layout: `episode`: drawn in each episode; `run`: drawn once per run, for training and evaluations alike.
        pixels: Pixels per side of a cell.
        max_steps: Steps until truncation; None: those of the task.
        kwargs: Arguments of the task's constructor.
        run_seed: Seed of the layout of a run; None: an unpredictable one.
        render_mode: `rgb_array` or None.
    """

    state_names = ("x", "y", "direction", "carried", "doors")

    def __init__(
        self,
        id: str = "MiniGrid-DoorKey-8x8-v0",
        view: Literal["partial", "full"] = "partial",
        layout: Literal["episode", "run"] = "episode",
        pixels: Positive = 4,
        max_steps: Positive | None = None,
        kwargs: dict[str, Any] | None = None,
        run_seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        env = _make(id, kwargs or {}, render_mode)
        super().__init__(env)
        self._grid = grid = cast("Any", env.unwrapped)
        if max_steps is not None:
            grid.max_steps = max_steps
            grid.fixed_max_steps = True  # BabyAI's levels compute theirs at every reset otherwise
        self._view, self._pixels = view, pixels
        drawn = int(np.random.default_rng(run_seed).integers(2**31))
        self._layout_seed = drawn if layout == "run" else None
        self._doors: list[Any] = []
        cells = (grid.height, grid.width) if view == "full" else (grid.agent_view_size,) * 2
        self.observation_space = gym.spaces.Box(0, 255, (cells[0] * pixels, cells[1] * pixels, 3), np.uint8)
        self.observation_note = _note(grid)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed if self._layout_seed is None else self._layout_seed)
        if self._layout_seed is not None:  # what moves by itself differs between episodes
            self._grid.np_random = np.random.default_rng(seed)
        self._doors = [thing for thing in self._grid.grid.grid if thing is not None and thing.type == "door"]
        return self._image(observation), {**info, "state": self._state()}

    def step(self, action: Any) -> tuple[Array, SupportsFloat, bool, bool, dict[str, Any]]:
        """Turn, walk, or use an object."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        truncated = truncated and not terminated  # the package reports both in the last step
        return self._image(observation), reward, terminated, truncated, {**info, "state": self._state()}

    def _image(self, observation: dict[str, Any]) -> Array:
        """Return the cells as an image; the package's arrays begin with the column."""
        from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX

        cells = observation["image"]
        if self._view == "full":
            cells = self._grid.grid.encode()
            cells[tuple(self._grid.agent_pos)] = OBJECT_TO_IDX["agent"], COLOR_TO_IDX["red"], self._grid.agent_dir
        image: Array = np.swapaxes(cells * FACTORS, 0, 1)
        return image.repeat(self._pixels, 0).repeat(self._pixels, 1)

    def _state(self) -> State:
        x, y = self._grid.agent_pos
        return int(x), int(y), int(self._grid.agent_dir), _number(self._grid.carrying), self._doors_number()

    def _doors_number(self) -> int:
        """Return the states of all doors as one number, because layouts differ in their number of doors."""
        number = 0
        for door in self._doors:
            number = number * DOOR_STATES + (0 if door.is_open else 2 if door.is_locked else 1)
        return number


def _make(id: str, kwargs: dict[str, Any], render_mode: str | None) -> gym.Env[Any, Any]:
    spec = registry.find(id)
    with needs_extra("minigrid"):
        import minigrid.minigrid_env  # slow to import, and most environments do not need it
    try:
        env = gym.make(spec, render_mode=render_mode, disable_env_checker=True, **kwargs)
    except Exception as error:  # a third-party constructor may raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadValueError("kwargs" if kwargs else "id", f"{id} cannot be created: {reason}") from error
    if not isinstance(env.unwrapped, minigrid.minigrid_env.MiniGridEnv):
        raise BadValueError("id", f"{id} is not a task of the package minigrid: use env=gym env.id={id}")
    return env


def _number(thing: Any) -> int:
    """Return a number for an object by its type and colour; 0 for none."""
    if thing is None:
        return 0
    kind, colour, _ = thing.encode()
    return int(kind) * COLOURS + int(colour)


def _note(grid: Any) -> str:
    """Return a sentence if the mission, which is not observed, differs between episodes."""
    from minigrid.core.mission import MissionSpace

    missions = grid.observation_space["mission"]
    if type(missions) is MissionSpace and missions.ordered_placeholders is None:
        return ""
    return "Observations do not contain the mission, which differs between the episodes of this task."
