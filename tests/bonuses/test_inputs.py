import gymnasium as gym
import numpy as np
import pytest
import torch

from cfn import make_bonus
from cfn.bonuses.inputs import ObservationCheck

VECTORS = gym.spaces.Box(-1, 1, (3,), np.float32)
IMAGES = gym.spaces.Box(0, 255, (5, 6), np.uint8)


@pytest.mark.parametrize(
    "batch", [[[1, 2, 3]], (np.ones(3),), np.ones((1, 3)), torch.ones(1, 3), np.ones((1, 3), bool)]
)
def test_batches_of_numbers_are_taken(batch):
    array = ObservationCheck(VECTORS)(batch)
    assert (array.shape, array.dtype) == ((1, 3), np.float32)
    assert array.ravel()[0] == 1


def test_an_array_that_fits_is_not_copied():
    batch = np.ones((2, 5, 6), np.uint8)
    assert ObservationCheck(IMAGES)(batch) is batch


@pytest.mark.parametrize(
    ("space", "observations", "message"),
    [
        (VECTORS, np.ones(3, np.float32), r"shape \(3,\) has no batch dimension: pass \(batch, 3\)"),
        (IMAGES, np.ones((5, 6), np.uint8), r"shape \(5, 6\) has no batch dimension: pass \(batch, 5, 6\)"),
        (VECTORS, np.ones((2, 4), np.float32), r"shape \(2, 4\), but the bonus was made for \(batch, 3\)"),
        (VECTORS, 1.0, r"shape \(\), but the bonus was made for \(batch, 3\)"),
        (IMAGES, np.ones((1, 5, 6), np.float32), "float32, but the bonus was made for images of bytes"),
        (VECTORS, [["a", "b", "c"]], "but a bonus takes numbers"),
        (VECTORS, [np.ones(3), np.ones(2)], "observations are no array"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(space, observations, message):
    with pytest.raises(ValueError, match=message):
        ObservationCheck(space)(observations)


@pytest.mark.parametrize("name", ["cfn", "rnd", "pixelcnn"])
def test_bonuses_check_what_they_see(name):
    bonus = make_bonus(name, IMAGES)
    for ask in (bonus.observe, bonus.novelty):
        with pytest.raises(ValueError, match="has no batch dimension"):
            ask(np.ones((5, 6), np.uint8))
        with pytest.raises(ValueError, match="images of bytes"):
            ask(np.ones((1, 5, 6), np.float32))
