import copy

import gymnasium as gym
import numpy as np
import pytest
from looks import IMAGES, VECTORS, image
from scipy import stats

from cfn.bonuses.context_trees import ContextTrees, Gain
from cfn.bonuses.cts import CTSBonus, pseudo_count
from cfn.errors import UsageError


def test_a_single_pixel_is_counted_but_for_an_eighth():
    trees, pixel = ContextTrees(1, 1), np.full((1, 1), 3, np.uint8)
    counts = [pseudo_count(trees.gain(pixel, learn=True)) for _ in range(4)]
    assert counts == pytest.approx([0.125, 1.125, 2.125, 3.125])


def test_a_large_image_needs_many_visits_until_it_counts():
    trees, constant = ContextTrees(42, 42), np.full((42, 42), 3, np.uint8)
    gains = [trees.gain(constant, learn=True) for _ in range(1001)]
    assert gains[0].after - gains[0].before == pytest.approx(1764 * np.log(4.5))
    assert [pseudo_count(gains[n]) for n in (40, 100, 1000)] == pytest.approx([0.667, 6.13, 509.8], rel=1e-3)


def test_a_walking_dot_is_counted():
    bonus, rng = CTSBonus(gym.spaces.Box(0, 255, (21, 21), np.uint8)), np.random.default_rng(0)
    counts, place = {}, np.zeros(2, int)
    for _ in range(5000):
        counts[tuple(place)] = counts.get(tuple(place), 0) + 1
        bonus.observe(dot(place)[None])
        place = np.clip(place + [(0, 1), (0, -1), (1, 0), (-1, 0)][rng.integers(4)], 0, 20)
    shown = bonus.novelty(np.stack([dot(place) for place in counts]))
    assert stats.spearmanr(shown, [n**-0.5 for n in counts.values()]).statistic > 0.98
    estimates = {
        n: np.median([b**-2 for b, m in zip(shown, counts.values(), strict=True) if m == n]) for n in (2, 3, 5)
    }
    assert estimates == pytest.approx({2: 1.78, 3: 2.78, 5: 4.65}, abs=0.3)
    unseen = [dot((y, x)) for y in range(21) for x in range(21) if (y, x) not in counts]
    assert np.median(bonus.novelty(np.stack(unseen))) > 3 > shown.max() / 2


def dot(place):
    picture = np.zeros((21, 21), np.uint8)
    picture[tuple(place)] = 255
    return picture


def test_a_new_image_pays_ten_times_the_scale_and_a_loss_nothing():
    bonus = CTSBonus(gym.spaces.Box(0, 255, (84, 84), np.uint8), scale=0.05)
    picture = np.random.default_rng(0).integers(0, 256, (1, 84, 84)).astype(np.uint8)
    assert bonus.novelty(picture) == pytest.approx(10)
    assert bonus.observe(picture) == pytest.approx(0.5)
    assert pseudo_count(Gain(-5.0, -5.0)) == pseudo_count(Gain(-5.0, -6.0)) == np.inf


def test_only_grey_levels_matter():
    bonus = CTSBonus(IMAGES)
    bonus.observe(np.full((60, 16, 16), 33, np.uint8))
    assert bonus.novelty(np.full((1, 16, 16), 63, np.uint8)) == bonus.novelty(np.full((1, 16, 16), 32, np.uint8))
    assert bonus.novelty(np.full((1, 16, 16), 64, np.uint8)) > bonus.novelty(np.full((1, 16, 16), 63, np.uint8))


def test_its_state_can_be_saved():
    one, other = CTSBonus(IMAGES), CTSBonus(IMAGES)
    for n in range(10):
        one.observe(image(n % 4)[None])
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for n in range(10):
        assert one.observe(image(n)[None]) == other.observe(image(n)[None])


def test_vectors_are_refused():
    with pytest.raises(UsageError, match=r"^bonus=cts needs images"):
        CTSBonus(VECTORS)
