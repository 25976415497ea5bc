import copy

import gymnasium as gym
import numpy as np
import pytest
from looks import IMAGES, KINDS, VECTORS, image

from cfn.bonuses.simhash import SimHashBonus
from cfn.errors import UsageError


@pytest.mark.parametrize("centre", [0, 7, 1000])
def test_distinct_images_are_counted_exactly(centre):
    """One-dot images are orthogonal: with 64 bits, two of 60 share a code with odds of 1e-16."""
    bonus = SimHashBonus(IMAGES, scale=0.5, bits=64, centre=centre)
    counts = {}
    for n in np.random.default_rng(0).integers(60, size=300).tolist():
        counts[n] = counts.get(n, 0) + 1
        reward = bonus.observe(image(n)[None])
        if centre == 0:
            assert reward == pytest.approx(0.5 * counts[n] ** -0.5)
    shown = np.stack([image(n) for n in counts])
    assert bonus.novelty(shown) == pytest.approx(np.array(list(counts.values())) ** -0.5)


def test_codes_of_vectors_at_60_degrees_differ_in_a_third_of_the_bits():
    bonus = SimHashBonus(gym.spaces.Box(-1, 1, (2,), np.float64), bits=20_000, centre=0)
    one, other = bonus._codes(np.array([[1, 0], [0.5, 0.75**0.5]], np.float32))
    bits = np.unpackbits(np.frombuffer(one, np.uint8)) != np.unpackbits(np.frombuffer(other, np.uint8))
    assert bits.mean() == pytest.approx(1 / 3, abs=0.02)


def test_without_the_mean_bright_images_share_most_bits():
    bright = np.full((40, 16, 16), 200, np.uint8)
    bright += np.random.default_rng(0).integers(0, 20, bright.shape, np.uint8)
    codes = {}
    for centre in (0, 40):
        bonus = SimHashBonus(IMAGES, bits=16, centre=centre)
        bonus.observe(bright)
        codes[centre] = len(bonus._counts)
    assert codes[0] < 5
    assert codes[40] > 35


def test_rows_of_one_batch_count_one_after_the_other():
    bonus = SimHashBonus(IMAGES, scale=1)
    assert bonus.observe(np.stack([image(1)] * 3)) == pytest.approx([1, 2**-0.5, 3**-0.5])


def test_what_was_never_seen_counts_as_seen_once():
    assert SimHashBonus(VECTORS).novelty(np.ones((2, 5))).tolist() == [1, 1]


@KINDS
@pytest.mark.parametrize("centre", [0, 5, 50])
def test_its_state_can_be_saved(space, look, centre):
    one, other = SimHashBonus(space, seed=0, centre=centre), SimHashBonus(space, seed=5, centre=centre)
    for n in range(10):
        one.observe(look(n % 4)[None])
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for n in range(60):
        assert one.observe(look(n % 6)[None]) == other.observe(look(n % 6)[None])


def test_other_observations_are_refused():
    with pytest.raises(UsageError, match="neither images"):
        SimHashBonus(gym.spaces.Discrete(3))
