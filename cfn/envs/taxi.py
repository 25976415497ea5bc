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
    """Return a wall on the right of a column, from row `first` to row `last`, as the cells to its left."""
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
    """The taxi carries a passenger; dropping the passenger at the goal depot gives a reward of 1 and ends the episode.

    The passenger can be dropped anywhere. The image is black and white: lines between cells are walls, a thin frame is
    the goal depot, a disc a waiting passenger, a ring an empty taxi. With the passenger inside, the taxi is a ring and
    a disc, and the image's margin is white. All edges are sharp; in the published 10x10 world they are grey, because
    its images are resized from 128 to 64 and then to 84 pixels.

    Args:
        size: Cells per side, 5 or 10.
        image_size: Pixels per side of the observation; at least six per cell and four for the margin.
        max_steps: Steps until truncation; None means 10 times `size`, as in the paper.
        render_mode: `rgb_array` or None.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(
        self,
        size: Literal[5, 10] = 5,
        image_size: Positive = 84,
        max_steps: Positive | None = None,
        render_mode: str | None = None,
    ) -> None:
        if image_size < 6 * size + 4:
            raise BadValueError(
                "image_size", f"{image_size} pixels are too few to draw {size} cells: use at least {6 * size + 4}"
            )
        self.size = size
        self.max_steps = max_steps or 10 * size
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Box(0, 255, (image_size, image_size), np.uint8)
        self.action_space = gym.spaces.Discrete(5)  # type: ignore[assignment]  # samples are NumPy integers
        self._cell = (image_size - 4) // size
        self._margin = (image_size - self._cell * size) // 2
        self._backgrounds = {inside: self._background(image_size, inside) for inside in (False, True)}
        self._taxi = self._goal = self._passenger = (0, 0)
        self._inside = False
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Draw a goal depot, then distinct depots for passenger and taxi until the passenger is not at the goal."""
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
        """Drive, or pick up or drop the passenger."""
        if not 0 <= action < 5:
            raise ValueError(
                f"a Taxi action should be 0 (left), 1 (right), 2 (up), 3 (down) or 4 (interact), not {action}"
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
        """Return the observation, five times larger, in three colour channels."""
        return np.kron(self._image()[:, :, None], np.ones((5, 5, 3), np.uint8))

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

    def _background(self, image_size: int, inside: bool) -> Array:
        """Return the image of the walls and of the margin, which is white with the passenger inside."""
        cell, margin = self._cell, self._margin
        image = np.full((image_size, image_size), 255 if inside else 0, np.uint8)
        image[margin : margin + self.size * cell, margin : margin + self.size * cell] = 0
        for row, column in WALLS[self.size]:
            top, right = margin + row * cell, margin + (column + 1) * cell
            # One pixel of each cell, where only frames are drawn: a wall hides one side of a frame, and no other shape.
            image[top : top + cell, right - 1 : right + 1] = 255
        return image

    def _image(self) -> Array:
        cell = self._cell
        image = self._backgrounds[self._inside].copy()
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
    """Return masks of frame, disc and ring within a cell; they do not overlap, and only the frame is on its border."""
    if cell not in _CACHE:
        frame = np.ones((cell, cell), np.bool_)
        frame[1:-1, 1:-1] = False
        y, x = np.mgrid[:cell, :cell] - (cell - 1) / 2
        radius = np.hypot(x, y)
        disc = radius <= 0.2 * cell
        ring = (radius > 0.28 * cell) & (radius <= 0.42 * cell)
        _CACHE[cell] = frame, disc, ring
    return _CACHE[cell]
