"""Small grey images: input of bonuses that count or model pixels instead of learning features."""

import cv2
import gymnasium as gym
import numpy as np

from cfn.errors import BadInputError
from cfn.nn import networks
from cfn.types import Array

LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""Weights of red, green and blue in a grey value."""


def require_images(bonus: str, space: gym.Space[object]) -> tuple[int, int, int]:
    """Return (channels, height, width) of a space of images; raise `BadInputError` for other observations.

    Args:
        bonus: Name of the bonus, for the message.
        space: Observations of one environment.
    """
    shape = networks.image_shape(space)
    if shape is None:
        raise BadInputError(
            f"bonus={bonus} needs images (uint8, height x width), but this environment has observations of {space}: "
            "use bonus=cfn, bonus=rnd or bonus=simhash"
        )
    return shape


def small_shape(shape: tuple[int, int, int], side: int) -> tuple[int, int]:
    """Return height and width after resizing images of (channels, height, width); images are never enlarged."""
    return min(side, shape[1]), min(side, shape[2])


def small_grey(images: Array, side: int) -> Array:
    """Return grey images (float32, 0 to 255), averaged over areas down to at most `side` pixels per side.

    Args:
        images: Images (uint8), one row per environment, with or without channels.
        side: Largest height and width.
    """
    grey = images.astype(np.float32)
    if grey.ndim == 4:
        grey = grey @ LUMA if grey.shape[-1] == len(LUMA) else grey.mean(axis=-1)
    height, width = min(side, grey.shape[1]), min(side, grey.shape[2])
    if (height, width) == grey.shape[1:]:
        return grey
    return np.stack([cv2.resize(one, (width, height), interpolation=cv2.INTER_AREA) for one in grey])
