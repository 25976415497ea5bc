"""Visual Gridworld (Section 4.1 and Appendix C): a square grid, observed as an image, with a goal in the far corner."""

from typing import Annotated, Any

import gymnasium as gym
import numpy as np
from annotated_types import Ge, Lt

from cfn.errors import BadValueError
from cfn.types import Array, Positive, State

LEFT, RIGHT, UP, DOWN = range(4)
MOVES = ((-1, 0), (1, 0), (0, 1), (0, -1))


class Gridworld(gym.Env[Array, int]):
    """The agent starts at the bottom left, (0, 0); the top right gives a reward of 1 and ends the episode.

    The image is black except for the agent's cell; goal and border are not drawn. A move into the border does nothing.
    With probability `action_noise` the action is replaced by one of the four, drawn uniformly. Episodes are then longer
    by a factor of 1 / (1 - action_noise), so that the expected number of unreplaced actions stays the same.

    Row 0 of the image is y = 0: the start is at the top left of the array, and `render` flips the picture. The paper
    does not say which row comes first, and it matters. The networks pad the odd pixel after the last row and column,
    so the first row and column reach half as many features as the last. Networks learn those states slowly, which is
    harmless at the start because it is visited often.

    Args:
        size: Cells per side.
        image_size: Pixels per side of the observation; a multiple of `size`.
        action_noise: Probability that an action is replaced.
        max_steps: Steps until truncation, without noise.
        render_mode: `rgb_array` or None.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(
        self,
        size: Annotated[int, Ge(2)] = 42,
        image_size: Positive = 84,
        action_noise: Annotated[float, Ge(0), Lt(1)] = 0.0,
        max_steps: Positive = 150,
        render_mode: str | None = None,
    ) -> None:
        if image_size % size:
            divisors = ", ".join(str(d) for d in range(2, min(image_size, 1000) + 1) if image_size % d == 0)
            raise BadValueError(
                "size",
                f"an image of {image_size} pixels cannot be divided into {size} equal cells: choose "
                + (f"a size from {divisors}, or " if divisors else "")
                + f"an image_size that is a multiple of {size}, such as {-(-image_size // size) * size}",
            )
        self.size = size
        self.action_noise = action_noise
        self.max_steps = round(max_steps / (1 - action_noise))
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Box(0, 255, (image_size, image_size), np.uint8)
        self.action_space = gym.spaces.Discrete(4)  # type: ignore[assignment]  # samples are NumPy integers
        self._shape = (image_size, image_size)
        self._pixels = image_size // size
        self._x = self._y = self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Move the agent to the bottom left."""
        super().reset(seed=seed, options=options)
        self._x = self._y = self._steps = 0
        return self._image(), {"state": self._state()}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Move one cell, or stay if the border is in the way."""
        if self.action_noise and self.np_random.random() < self.action_noise:
            action = int(self.np_random.integers(4))
        elif not 0 <= action < 4:
            raise ValueError(f"a Gridworld action should be 0 (left), 1 (right), 2 (up) or 3 (down), not {action}")
        dx, dy = MOVES[action]
        last = self.size - 1
        self._x = min(max(self._x + dx, 0), last)
        self._y = min(max(self._y + dy, 0), last)
        self._steps += 1
        terminated = self._x == last and self._y == last
        truncated = not terminated and self._steps >= self.max_steps
        return self._image(), float(terminated), terminated, truncated, {"state": self._state()}

    def render(self) -> Array:
        """Return a picture at most 420 pixels wide: dark floor, green goal, white agent."""
        cell = max(1, 420 // self.size)
        picture = np.full((self.size * cell, self.size * cell, 3), 40, np.uint8)
        self._paint(picture, self.size - 1, self.size - 1, cell, (90, 200, 120))
        self._paint(picture, self._x, self._y, cell, (255, 255, 255))
        return picture[::-1].copy()

    def _image(self) -> Array:
        image = np.zeros(self._shape, np.uint8)
        self._paint(image, self._x, self._y, self._pixels, 255)
        return image

    def _paint(self, image: Array, x: int, y: int, cell: int, colour: int | tuple[int, int, int]) -> None:
        image[y * cell : (y + 1) * cell, x * cell : (x + 1) * cell] = colour

    def _state(self) -> State:
        return self._x, self._y
