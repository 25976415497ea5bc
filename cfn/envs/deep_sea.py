"""Deep Sea (Osband et al., 2017): a task that no agent solves without exploring over many steps, as in bsuite.

The rules, the criterion and its names are those of bsuite (Osband et al., 2020). Differences: the end of an episode is
one true state, because all of its observations are black; bsuite's analysis checks its criterion at logarithmically
spaced episodes, and this class after every one.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import gymnasium as gym
import numpy as np
from annotated_types import Ge

from cfn.errors import BadValueError
from cfn.types import Array, Positive, Probability, State

MOVE_COST = 0.01
"""Cost of an episode of moves to the right."""
BAD_EPISODES = "explore/bad_episodes"
"""Fraction of episodes with a move to the left on the diagonal, the only way to the reward."""
SOLVED_BELOW = {"deterministic": 0.9, "stochastic": 0.8}
"""Bad episodes below which the task is solved: 0.9 in bsuite's paper, 0.8 in its code for the stochastic version."""
FIRST_EPISODE = {"deterministic": 1, "stochastic": 100}
"""First episode at which the task can be solved: with few, wind makes good ones out of luck."""
MOST_EPISODES = 10_000
FORGIVENESS = 100
"""Episodes above the 2^size that random actions need on average to find the reward."""


class DeepSea(gym.Env[Array, int]):
    """The agent dives from the top left of a square grid, one row per step, and moves one column to the left or right.

    Moving right in each step leads along the diagonal to a reward of 1 in the last step; each such move costs 0.01 /
    `size`. An episode has `size` steps. Which of the two actions moves to the right is drawn for each cell, once per
    run. The true state is (row, column), and (`size`, 0) at the end of an episode.

    Args:
        size: Cells per side, and steps per episode.
        stochastic: Whether a move to the right fails with probability 1 / `size` (the agent stays in its column), and
            the rewards in the corners of the last row have Gaussian noise of standard deviation 1.
        observation: `image`: an image of the grid, black except for the agent's cell; `one_hot`: a vector with one
            number per cell.
        image_size: Pixels per side of the image, a multiple of `size`; None: one per cell.
        solved_below: Fraction of bad episodes below which the task is solved; None: 0.9, or 0.8 if `stochastic`.
        run_seed: Seed of the actions of a run; None: an unpredictable one.
        render_mode: `rgb_array` or None.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(
        self,
        size: Annotated[int, Ge(2)] = 10,
        stochastic: bool = False,
        observation: Literal["image", "one_hot"] = "image",
        image_size: Positive | None = None,
        solved_below: Probability | None = None,
        run_seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if image_size and observation == "one_hot":
            raise BadValueError("image_size", "vectors have no pixels: leave it out, or use observation=image")
        if image_size and image_size % size:
            raise BadValueError(
                "image_size",
                f"an image of {image_size} pixels cannot be divided into {size} equal cells: choose a multiple of "
                f"{size}, such as {-(-image_size // size) * size}",
            )
        version = "stochastic" if stochastic else "deterministic"
        self.size = self.max_steps = size
        self.stochastic = stochastic
        self.render_mode = render_mode
        self.actions_right = np.random.default_rng(run_seed).integers(2, size=(size, size))
        """Action that moves to the right, by row and column."""
        self._pixels = (image_size or size) // size
        self._solved_below = SOLVED_BELOW[version] if solved_below is None else solved_below
        self._first_episode = FIRST_EPISODE[version]
        side = size * self._pixels
        self.observation_space = (
            gym.spaces.Box(0, 255, (side, side), np.uint8)
            if observation == "image"
            else gym.spaces.Box(0, 1, (size * size,), np.float32)
        )
        self.action_space = gym.spaces.Discrete(2)  # type: ignore[assignment]  # samples are NumPy integers
        self._row = self._column = 0
        self._bad = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Move the agent to the top left."""
        super().reset(seed=seed, options=options)
        self._row = self._column = 0
        self._bad = False
        return self._observation(), {"state": self._state()}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Dive one row, and move one column."""
        if action not in (0, 1):
            raise ValueError(f"a Deep Sea action should be 0 or 1, not {action}")
        right = bool(action == self.actions_right[self._row, self._column])
        reward = self._reward(right)
        self._bad |= not right and self._column == self._row
        if not right:
            self._column = max(self._column - 1, 0)
        elif not (self.stochastic and self.np_random.random() < 1 / self.size):
            self._column = min(self._column + 1, self.size - 1)
        self._row += 1
        ended = self._row == self.size
        info: dict[str, Any] = {"state": self._state()}
        if ended:
            info["episode_metrics"] = {BAD_EPISODES: float(self._bad)}
        return self._observation(), reward, ended, False, info

    def is_solved(self, episodes: int, means: Mapping[str, float]) -> bool:
        """Return whether this many episodes have been enough to solve the task, by bsuite's criterion."""
        in_time = episodes < 2**self.size + FORGIVENESS and episodes <= MOST_EPISODES
        return in_time and episodes >= self._first_episode and means[BAD_EPISODES] < self._solved_below

    def render(self) -> Array:
        """Return a picture at most 420 pixels wide: dark water, green treasure, white agent."""
        cell = max(1, 420 // self.size)
        picture = np.full((self.size * cell, self.size * cell, 3), 40, np.uint8)
        picture[-cell:, -cell:] = (90, 200, 120)
        if self._row < self.size:
            picture[self._row * cell :, self._column * cell :][:cell, :cell] = 255
        return picture

    def _reward(self, right: bool) -> float:
        """Return the reward of a move from the current cell."""
        last = self.size - 1
        reward = -MOVE_COST / self.size if right else 0.0
        if right and self._column == last:
            reward += 1
        if self.stochastic and self._row == last and self._column in (0, last):
            reward += float(self.np_random.standard_normal())
        return reward

    def _observation(self) -> Array:
        """Return the agent's cell as an image or a vector; at the end of an episode, nothing is in it."""
        space = self.observation_space
        cells = np.zeros((self.size, self.size), space.dtype)
        if self._row < self.size:
            cells[self._row, self._column] = 255 if space.dtype == np.uint8 else 1
        if len(space.shape or ()) == 1:
            return cells.ravel()
        return cells if self._pixels == 1 else cells.repeat(self._pixels, 0).repeat(self._pixels, 1)

    def _state(self) -> State:
        return (self._row, self._column) if self._row < self.size else (self.size, 0)
