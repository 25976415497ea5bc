"""States to be seen: numbered images and vectors."""

import gymnasium as gym
import numpy as np
import pytest

IMAGES = gym.spaces.Box(0, 255, (16, 16), np.uint8)
VECTORS = gym.spaces.Box(-1, 1, (5,), np.float64)


def image(number):
    picture = np.zeros((16, 16), np.uint8)
    picture[number // 8 * 2 : number // 8 * 2 + 2, number % 8 * 2 : number % 8 * 2 + 2] = 255
    return picture


def vector(number):
    return np.random.default_rng(number).uniform(-1, 1, 5)


KINDS = pytest.mark.parametrize(("space", "look"), [(IMAGES, image), (VECTORS, vector)], ids=["images", "vectors"])
