"""Frame stacking: several consecutive images per observation, so that motion is visible."""

from collections import deque
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.errors import UsageError
from cfn.types import Array


class StackFrames(gym.Wrapper[Array, Any, Array, Any]):
    """Stacks the last `size` images along a new last dimension, the newest last; episodes start with black images.

    Args:
        env: Environment with grey images as observations.
        size: Images per stack.
    """

    def __init__(self, env: gym.Env[Array, Any], size: int) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, gym.spaces.Box) or space.dtype != np.uint8 or len(space.shape) != 2:
            raise UsageError(
                f"frame_stack={size} needs grey images (uint8, height x width), and this environment has {space}: "
                "use frame_stack=1"
            )
        self.observation_space = gym.spaces.Box(0, 255, (*space.shape, size), np.uint8)
        self._black = np.zeros(space.shape, np.uint8)
        self._frames: deque[Array] = deque(maxlen=size)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Return black images followed by the first image."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._frames.extend([self._black] * self.observation_space.shape[-1])  # type: ignore[index]
        return self._stacked(observation), info

    def step(self, action: Any) -> tuple[Array, Any, bool, bool, dict[str, Any]]:
        """Step the environment; the new image replaces the oldest."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._stacked(observation), reward, terminated, truncated, info

    def _stacked(self, newest: Array) -> Array:
        self._frames.append(newest)
        return np.stack(self._frames, axis=-1)


def newest(observations: Array, size: int) -> Array:
    """Return the newest frame of each stack of `size`; bonuses and counts use only this frame."""
    return observations if size == 1 else np.ascontiguousarray(observations[..., -1])


def newest_space(space: gym.Space[Any], size: int) -> gym.Space[Any]:
    """Return the space of the frames that `newest` returns."""
    return space if size == 1 else gym.spaces.Box(0, 255, (space.shape or ())[:-1], np.uint8)
