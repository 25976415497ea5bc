"""Visual Taxi (Appendix C, after Dietterich 1998 and Diuk et al. 2008): carry the passenger to the framed depot."""

from typing import Any, Literal

import gymnasium as gym
import numpy as np

from cfn.errors import BadValueError
from cfn.types import Array, Positive, State

LEFT, RIGHT, UP, DOWN, INTERACT = range(5)
MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0))

Cell = tuple[int, int]  # row, column; row 0 is on top


def _wall(column: int, first: int, last: int) -> set[Cell]:
    """A wall on the right of a column's cells, from one row to another."""
    return {(row, column) for row in range(first, last + 1)}


DEPOTS: dict[int, tuple[Cell, ...]] = {
    5: ((0, 0), (4, 0), (4, 3), (0, 4)),
    10: ((0, 0), (8, 0), (9, 4), (0, 5), (3, 3), (4, 6), (0, 8), (9, 9)),
}
WALLS: dict[int, set[Cell]] = {
    5: _wall(1, 0, 1) | _wall(0, 3, 4) | _wall(2, 3, 4),
    10: _wall(2, 0, 3) | _wall(7, 0, 3) | _wall(5, 2, 5) | _wall(0, 6, 9) | _wall(3, 6, 9) | _wall(7, 6, 9),
}


class Taxi(gym.Env[Array, int]):
    """+1 and the end of the episode when the passenger stands, outside the taxi, on the goal depot.

    The passenger can be put down anywhere. The image is black and white: a thin frame is the goal depot, a
    disc a waiting passenger, a ring an empty taxi; a taxi with its passenger is filled, and the margin is white.

    Args:
        size: 5 or 10 cells along a side.
        image_size: Pixels along a side of the observation; six for each cell and four for the margin, or more.
        max_steps: Steps until truncation; by default 10 times the size, as in the paper.
        render_mode: `rgb_array` or None.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  # Gymnasium's own way

    def __init__(
        self,
        size: Literal[5, 10] = 5,
        image_size: Positive = 84,
        max_steps: Positive | None = None,
        render_mode: str | None = None,
    ) -> None:
        if image_size < 6 * size + 4:
            raise BadValueError(
                "image_size", f"{image_size} pixels are too few to draw {size} cells: take {6 * size + 4}"
            )
        self.size = size
        self.max_steps = max_steps or 10 * size
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Box(0, 255, (image_size, image_size), np.uint8)
        self.action_space = gym.spaces.Discrete(5)  # type: ignore[assignment]  # its actions are numpy's integers
        self._shape = (image_size, image_size)
        self._cell = (image_size - 4) // size
        self._margin = (image_size - self._cell * size) // 2
        self._taxi = self._goal = self._passenger = (0, 0)
        self._inside = False
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """A goal depot, and taxi and passenger on two depots, drawn again while the passenger is on its goal."""
        super().reset(seed=seed, options=options)
        depots = DEPOTS[self.size]
        self._goal = depots[int(self.np_random.integers(len(depots)))]
        self._passenger = self._goal
        while self._passenger == self._goal:
            passenger, taxi = self.np_random.choice(len(depots), 2, replace=False)
            self._passenger, self._taxi = depots[passenger], depots[taxi]
        self._inside = False
        self._steps = 0
        return self._image(), {"state": self._state()}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Drive, or pick up or put down the passenger."""
        if not 0 <= action < 5:
            raise ValueError(
                f"an action of Taxi is 0 (left), 1 (right), 2 (up), 3 (down) or 4 (interact), not {action}"
            )
        if action == INTERACT:
            if self._inside:
                self._inside = False
            elif self._passenger == self._taxi:
                self._inside = True
        else:
            self._drive(*MOVES[action])
        self._steps += 1
        terminated = not self._inside and self._passenger == self._goal
        truncated = not terminated and self._steps >= self.max_steps
        return self._image(), float(terminated), terminated, truncated, {"state": self._state()}

    def render(self) -> Array:
        """The observation, larger and in grey, with the walls."""
        picture = np.where(self._image() > 0, 235, 30).astype(np.uint8)
        for row, column in WALLS[self.size]:
            top, right = self._margin + row * self._cell, self._margin + (column + 1) * self._cell
            picture[top : top + self._cell, right - 1 : right + 1] = 120
        return np.repeat(np.kron(picture, np.ones((5, 5), np.uint8))[:, :, None], 3, axis=2)

    def _drive(self, down: int, right: int) -> None:
        row, column = self._taxi
        to_row, to_column = row + down, column + right
        inside = 0 <= to_row < self.size and 0 <= to_column < self.size
        walled = right and (row, min(column, to_column)) in WALLS[self.size]
        if inside and not walled:
            self._taxi = (to_row, to_column)
            if self._inside:
                self._passenger = self._taxi

    def _state(self) -> State:
        return (*self._taxi, *self._goal, *self._passenger, int(self._inside))

    def _image(self) -> Array:
        cell = self._cell
        image = np.full(self._shape, 255 if self._inside else 0, np.uint8)
        grid = slice(self._margin, self._margin + self.size * cell)
        image[grid, grid] = 0
        frame, disc, ring = _shapes(cell)
        shapes = [(self._goal, frame), (self._taxi, disc | ring if self._inside else ring)]
        if not self._inside:
            shapes.append((self._passenger, disc))
        for (row, column), shape in shapes:
            top, left = self._margin + row * cell, self._margin + column * cell
            image[top : top + cell, left : left + cell][shape] = 255
        return image


_CACHE: dict[int, tuple[Array, Array, Array]] = {}


def _shapes(cell: int) -> tuple[Array, Array, Array]:
    """Frame, disc and ring within a cell, as masks that do not touch each other."""
    if cell not in _CACHE:
        frame = np.ones((cell, cell), np.bool_)
        frame[1:-1, 1:-1] = False
        y, x = np.mgrid[:cell, :cell] - (cell - 1) / 2
        radius = np.hypot(x, y)
        disc = radius <= 0.2 * cell
        ring = (radius > 0.28 * cell) & (radius <= 0.42 * cell)
        _CACHE[cell] = frame, disc, ring
    return _CACHE[cell]
