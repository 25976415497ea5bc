"""The closed form: a linear coin-flip network on frozen features, which counts while features outnumber states."""

import copy

import gymnasium as gym
import numpy as np
import pytest
from looks import IMAGES, KINDS, VECTORS, image

from cfn.bonuses.elliptical import EllipticalBonus
from cfn.bonuses.theory import linear_inverse_count
from cfn.errors import UsageError

SMALL = {"features": 128, "seed": 3}


def visited(space, look, visits, **keys):
    bonus = EllipticalBonus(space, **{**SMALL, **keys})
    for n in visits:
        bonus.observe(look(int(n))[None])
    return bonus


@KINDS
def test_it_counts_exactly(space, look):
    visits = [n for n in range(30) for _ in range(1 + n % 10)]
    np.random.default_rng(0).shuffle(visits)
    bonus = visited(space, look, visits, ridge=1e-4)
    counts = np.bincount(visits)
    predicted = bonus.novelty(np.stack([look(n) for n in range(30)]))
    assert predicted == pytest.approx(counts**-0.5, abs=0.03)


@KINDS
def test_it_is_the_linear_network_of_the_paper(space, look):
    """With more states than features, too: the form of Appendix B. The ridge is one small visit to each axis."""
    visits = np.random.default_rng(1).integers(40, size=300)
    bonus = visited(space, look, visits, features=16, ridge=1e-4)
    features = np.vstack([bonus._features(np.stack([look(int(n)) for n in visits])), 1e-2 * np.eye(16)])
    for n in range(5):
        expected = linear_inverse_count(features, bonus._features(look(n)[None])[0].astype(np.float64))
        assert bonus.novelty(look(n)[None])[0] ** 2 == pytest.approx(expected, rel=1e-3)


def test_the_visits_sum_of_squares_is_the_rank():
    """Why the bonus is too small with more states than features."""
    visits = np.random.default_rng(1).integers(40, size=400)
    bonus = visited(IMAGES, image, visits, features=16, ridge=1e-6)
    squares = bonus.novelty(np.stack([image(int(n)) for n in visits])) ** 2
    assert squares.sum() == pytest.approx(16, rel=0.02)


@KINDS
def test_a_new_state_is_new(space, look):
    bonus = visited(space, look, np.random.default_rng(0).integers(12, size=300), ridge=1e-4)
    unseen = bonus.novelty(np.stack([look(n) for n in range(40, 50)]))
    assert (unseen > 0.9).all()


def test_the_reward_counts_the_current_visit():
    bonus = visited(IMAGES, image, [], scale=0.5, ridge=1e-4)
    rewards = [float(bonus.observe(image(3)[None])[0]) for _ in range(4)]
    assert rewards == pytest.approx([0.5 * n**-0.5 for n in range(1, 5)], rel=0.01)


def test_the_normalised_reward_divides_by_the_running_variance():
    bonus = visited(IMAGES, image, [0, 1, 0, 2, 0], normalize=True, scale=2.0)
    stats = copy.deepcopy(bonus._bonus_stats)
    reward = bonus.observe(image(1)[None])
    novelty = bonus.novelty(image(1)[None])
    stats.update(novelty)
    assert reward == pytest.approx(2 * (novelty - stats.mean) / stats.variance)


@KINDS
def test_its_state_can_be_saved(space, look):
    one = visited(space, look, np.random.default_rng(0).integers(12, size=150), normalize=True)
    other = EllipticalBonus(space, seed=99, features=128, normalize=True)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for n in range(40):
        rewards = [bonus.observe(look(n % 15)[None])[0] for bonus in (one, other)]
        assert rewards[0] == rewards[1]


@KINDS
def test_the_same_seed_gives_the_same_features(space, look):
    state = look(3)[None]
    one, same, other = (EllipticalBonus(space, seed=seed, features=64)._features(state) for seed in (3, 3, 4))
    assert (one == same).all()
    assert (one != other).any()


def test_asking_changes_nothing():
    bonus = visited(VECTORS, lambda n: np.random.default_rng(n).uniform(-1, 1, 5), range(70))
    before = copy.deepcopy(bonus.state_dict())
    bonus.novelty(np.zeros((3, 5)))
    after = bonus.state_dict()
    assert all((before["inverse"][k] == after["inverse"][k]).all() for k in before["inverse"])


def test_impossible_input_is_refused():
    with pytest.raises(UsageError, match="neither images"):
        EllipticalBonus(gym.spaces.Discrete(3))
    with pytest.raises(UsageError, match="NaN"):
        EllipticalBonus(VECTORS, features=8).observe(np.array([[0.0, 1.0, np.nan, 0.0, 0.0]]))
    with pytest.raises(ValueError, match=r"bonus\.features"):
        EllipticalBonus(IMAGES, features=8).load_state_dict(EllipticalBonus(IMAGES, features=9).state_dict())
