import gymnasium as gym
import numpy as np
import pytest

from cfn.bonuses.grey import require_images, small_grey, small_shape
from cfn.errors import UsageError


def test_large_images_are_averaged_over_areas_and_small_ones_are_left_alone():
    images = np.zeros((2, 4, 4), np.uint8)
    images[0, :2, :2] = [[0, 100], [200, 100]]
    assert small_grey(images, 2).tolist() == [[[100, 0], [0, 0]], [[0, 0], [0, 0]]]
    assert (small_grey(images, 9) == images).all()
    assert small_shape((1, 84, 20), 42) == (42, 20)


def test_colours_become_grey():
    green = np.zeros((1, 3, 3, 3), np.uint8)
    green[..., 1] = 100
    assert small_grey(green, 3) == pytest.approx(58.7)


def test_vectors_are_refused_with_a_sentence():
    with pytest.raises(UsageError, match=r"^bonus=mine needs images .* use bonus=cfn"):
        require_images("mine", gym.spaces.Box(-1, 1, (5,), np.float64))
