import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from looks import IMAGES, KINDS, VECTORS, image

from cfn.bonuses.rnd import RNDBonus
from cfn.errors import UsageError


def shapes(net):
    return [tuple(p.shape) for p in net.parameters() if p.ndim > 1]


def test_the_networks_are_the_papers():
    images = RNDBonus(gym.spaces.Box(0, 255, (84, 84), np.uint8))
    trunk = [(32, 1, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3)]
    assert shapes(images._target) == [*trunk, (512, 7744)]
    assert shapes(images._predictor) == [*trunk, (512, 7744), (512, 512), (512, 512)]
    vectors = RNDBonus(VECTORS)
    assert shapes(vectors._target) == [(400, 5), (512, 400)]
    assert shapes(vectors._predictor) == [(400, 5), (300, 400), (512, 300)]


@KINDS
def test_what_is_seen_often_becomes_less_novel_than_what_is_not(space, look):
    bonus = RNDBonus(space, seed=1, lr=1e-3)
    rng = np.random.default_rng(0)
    for _ in range(300):
        bonus.observe(look(int(rng.integers(5)))[None])
        bonus.update()
    seen = bonus.novelty(np.stack([look(n) for n in range(5)]))
    unseen = bonus.novelty(np.stack([look(n) for n in range(30, 45)]))
    assert seen.max() < np.median(unseen)


def test_one_step_for_each_observation_however_many_environments():
    bonus = RNDBonus(IMAGES)
    bonus.observe(np.stack([image(n) for n in range(3)]))
    losses = [bonus.update() for _ in range(4)]
    assert [bool(loss) for loss in losses] == [True, True, True, False]


def test_the_reward_is_normalised_by_the_running_variance():
    bonus = RNDBonus(IMAGES, scale=0.5)
    for n in range(10):
        bonus.observe(image(n)[None])
    moments, inputs = copy.deepcopy(bonus._errors), copy.deepcopy(bonus._inputs)
    inputs.update(image(3)[None] / 255.0)
    reward = bonus.observe(image(3)[None])
    assert bonus._inputs.mean == pytest.approx(inputs.mean)
    error = bonus.novelty(image(3)[None])
    moments.update(error)
    assert reward == pytest.approx(0.5 * (error - moments.mean) / moments.variance)


def test_the_target_is_never_trained_and_asking_changes_nothing():
    bonus = RNDBonus(IMAGES)
    target = copy.deepcopy(bonus._target.state_dict())
    for n in range(5):
        bonus.observe(image(n)[None])
        bonus.update()
    before = copy.deepcopy(bonus._predictor.state_dict())
    first, second = (bonus.novelty(image(n % 5)[None]) for n in (1, 6))
    assert first == second
    assert all(torch.equal(target[k], v) for k, v in bonus._target.state_dict().items())
    assert all(torch.equal(before[k], v) for k, v in bonus._predictor.state_dict().items())


@KINDS
def test_its_state_can_be_saved(space, look):
    one, other = RNDBonus(space, seed=0), RNDBonus(space, seed=5)
    for n in range(10):
        one.observe(look(n)[None])
        one.update()
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for n in range(5):
        assert one.observe(look(n)[None]) == other.observe(look(n)[None])
        assert one.update() == other.update()


def test_other_observations_are_refused():
    with pytest.raises(UsageError, match="neither images"):
        RNDBonus(gym.spaces.Discrete(3))
