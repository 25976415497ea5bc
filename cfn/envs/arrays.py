"""Observations as arrays: integers become one-hot vectors, structures are flattened, images stay images."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.envs.checks import as_index
from cfn.envs.spaces import Flattening, entry_at, is_countable, is_image, leaves, numeric_entries, numeric_entry
from cfn.envs.true_states import counted
from cfn.nn.images import channels_first
from cfn.types import Array


class Converted(gym.ObservationWrapper[Any, Any, Any]):
    """Converts each observation.

    Args:
        env: Environment to wrap.
        space: Space of the converted observations.
        convert: Function that converts an observation.
        note: Sentence for users on entries that were left out or flattened; empty if there are none.
    """

    def __init__(
        self, env: gym.Env[Any, Any], space: gym.Space[Any], convert: Callable[[Any], Array], note: str = ""
    ) -> None:
        super().__init__(env)
        self.observation_space = space
        self._convert = convert
        self.observation_note = note

    def observation(self, observation: Any) -> Array:
        """Return the converted observation."""
        return self._convert(observation)


def with_arrays(env: gym.Env[Any, Any], count: bool = True, key: str | None = None) -> gym.Env[Any, Any]:
    """Return the environment with vectors or images as observations; without entries that are not numeric.

    Args:
        env: Environment to wrap.
        count: Whether discrete observations are reported as true states. `Discrete` ones always are.
        key: Config key that chooses an entry of a Dict observation, to be named in the note.
    """
    space = env.observation_space
    if is_image(space) and channels_first(space.shape or ()):
        return Converted(env, _channels_last(space), lambda image: np.moveaxis(image, 0, -1))
    if is_image(space) or _is_vector(space):
        return env
    if is_countable(space) and (count or isinstance(space, gym.spaces.Discrete)):
        env = counted(env)
    if isinstance(space, gym.spaces.Discrete):
        return Converted(env, gym.spaces.Box(0, 1, (int(space.n),), np.float32), _OneHot(space))
    flattening = Flattening(space)
    if image := flattening.only_image:
        path, image_space = image
        note = _note(space, flattening, "the images of one entry", key)
        if channels_first(image_space.shape or ()):
            last = _channels_last(image_space)
            return Converted(env, last, lambda observation: np.moveaxis(entry_at(path, observation), 0, -1), note)
        return Converted(env, image_space, lambda observation: np.asarray(entry_at(path, observation)), note)
    note = _note(space, flattening, f"flattened to vectors of {flattening.space.shape[0]} numbers", key)
    return Converted(env, flattening.space, flattening.flatten, note)


def choose_entry(env: gym.Env[Any, Any], name: str) -> gym.Env[Any, Any]:
    """Return the environment with one entry of its Dict observations; raise `BadValueError` for `observation`."""
    space = numeric_entry(env.observation_space, name, "observation")
    return Converted(env, space, lambda observation: observation[name])


def _channels_last(space: Any) -> gym.spaces.Box:
    return gym.spaces.Box(np.moveaxis(space.low, 0, -1), np.moveaxis(space.high, 0, -1), dtype=space.dtype)


class _OneHot:
    """Function from an integer of a Discrete space to a one-hot vector."""

    def __init__(self, space: gym.spaces.Discrete) -> None:
        self._space, self._size, self._start = space, int(space.n), int(space.start)

    def __call__(self, number: Any) -> Array:
        vector = np.zeros(self._size, np.float32)
        vector[as_index(self._space, number) - self._start] = 1
        return vector


def _is_vector(space: gym.Space[Any]) -> bool:
    """Return whether networks take these observations for vectors; they take byte arrays for images."""
    return isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and space.dtype != np.uint8


def _note(space: gym.Space[Any], flattening: Flattening, result: str, key: str | None) -> str:
    """Return a sentence if entries were dropped or images flattened, with the key that chooses an entry."""
    dropped = flattening.dropped
    if not dropped and not any(map(is_image, leaves(space).values())):
        return ""
    without = f", without {', '.join(dropped)} ({'is' if len(dropped) == 1 else 'are'} not numeric)" if dropped else ""
    choice = ""
    if key and isinstance(space, gym.spaces.Dict):
        choice = f": {key} chooses one entry instead ({', '.join(numeric_entries(space))})"
    return f"Observations are {result}{without}{choice}."
