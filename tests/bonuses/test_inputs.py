import gymnasium as gym
import numpy as np
import pytest
import torch

from cfn import make_bonus
from cfn.bonuses.inputs import ObservationCheck
from cfn.bonuses.library import bonus_names
from cfn.bonuses.visits import Visits

VECTORS = gym.spaces.Box(-1, 1, (3,), np.float32)
IMAGES = gym.spaces.Box(0, 255, (5, 6), np.uint8)


@pytest.mark.parametrize(
    "batch", [[[1, 2, 3]], (np.ones(3),), np.ones((1, 3)), torch.ones(1, 3), np.ones((1, 3), bool)]
)
def test_batches_of_numbers_are_taken(batch):
    array = ObservationCheck(VECTORS)(batch)
    assert (array.shape, array.dtype) == ((1, 3), np.float32)
    assert array.ravel()[0] == 1


def test_bytes_in_a_list_or_in_larger_integers_are_taken():
    frames = np.arange(60).reshape(2, 5, 6) + 100
    for batch in (frames.tolist(), frames, frames.astype(np.uint16)):
        array = ObservationCheck(IMAGES)(batch)
        assert array.dtype == np.uint8
        assert (array == frames).all()


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
        (IMAGES, np.full((1, 5, 6), 256), "int64, but the bonus was made for images of bytes"),
        (IMAGES, np.full((1, 5, 6), -1), "int64, but the bonus was made for images of bytes"),
        (VECTORS, [["a", "b", "c"]], "but a bonus takes numbers"),
        (VECTORS, [np.ones(3), np.ones(2)], "observations are no array"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(space, observations, message):
    with pytest.raises(ValueError, match=message):
        ObservationCheck(space)(observations)


SEEING = sorted(set(bonus_names()) - {"none", "count"})
"""Bonuses that look at observations."""
ACTIONS = gym.spaces.Discrete(2)


def questions(bonus, good):
    """The ways to show observations to a bonus."""
    begins = np.ones(1, bool)
    visits = Visits(((0,),), np.zeros(1, int), good, terminated=begins, truncated=~begins, begins=begins)
    return (lambda observations: bonus.observe(observations, visits), bonus.novelty)


@pytest.mark.parametrize("name", SEEING)
def test_bonuses_check_images(name):
    good = np.ones((1, 5, 6), np.uint8)
    for ask in questions(make_bonus(name, IMAGES, ACTIONS), good):
        with pytest.raises(ValueError, match="has no batch dimension"):
            ask(good[0])
        for scaled in (np.float32, np.float64):
            with pytest.raises(ValueError, match=r"images of bytes .* before they are scaled"):
                ask(good.astype(scaled))
        assert len(ask(good)) == len(ask(good.tolist())) == 1


@pytest.mark.parametrize("name", sorted(set(SEEING) - {"cts", "pixelcnn"}))
def test_bonuses_check_vectors(name):
    good = np.ones((1, 3), np.float32)
    for ask in questions(make_bonus(name, VECTORS, ACTIONS), good):
        with pytest.raises(ValueError, match="has no batch dimension"):
            ask(good[0])
        with pytest.raises(ValueError, match="no array"):
            ask([[1, 2, 3], [1, 2]])
        for value in (np.nan, np.inf, 1e300):  # the last one is infinite in single precision
            with pytest.raises(ValueError, match="has NaN or infinity"):
                ask(np.full((1, 3), value))
        for batch in (good, good.tolist(), good.astype(np.float64), good.astype(np.int64)):
            assert len(ask(batch)) == 1


@pytest.mark.parametrize("name", SEEING)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_with_the_channels_first_are_refused(name, channels):
    """They would be read as an image of 3 rows with 84 channels."""
    with pytest.raises(ValueError, match="have their channels first"):
        make_bonus(name, gym.spaces.Box(0, 255, (channels, 84, 84), np.uint8), ACTIONS)
