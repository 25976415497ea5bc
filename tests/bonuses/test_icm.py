import numpy as np
import pytest
import torch
from looks import IMAGES, KINDS, VECTORS, image
from walking import ACTIONS, assert_asking_changes_nothing, assert_resumes, walk

from cfn.bonuses import icm
from cfn.bonuses.icm import ICMBonus, forward_error
from cfn.bonuses.visits import Visits
from cfn.errors import UsageError

SMALL = {"min_size": 8, "batch_size": 8, "capacity": 60}


def test_errors_of_1_and_1_pay_a_hundredth():
    error = forward_error(torch.tensor([[1.0, 2, 3]]), torch.tensor([[0.0, 1, 3]]))
    assert float(0.01 * error) == pytest.approx(0.01)


def test_the_reward_is_the_scaled_error_and_novelty_that_of_the_latest_visit():
    bonus = ICMBonus(VECTORS, ACTIONS, scale=0.5)
    observations, visits = next(walk(VECTORS, 1))
    assert bonus.novelty(observations).tolist() == [0, 0], "nothing is known before a visit"
    rewards = bonus.observe(observations, visits)
    expected, _ = bonus._errors(*map(bonus._sent, (observations, visits.actions, visits.next_observations)))
    assert rewards == pytest.approx(0.5 * expected.detach().numpy())
    assert 0.5 * bonus.novelty(observations) == pytest.approx(rewards)


@pytest.mark.thorough
def test_what_is_predictable_becomes_boring_and_noise_does_not():
    """Half of the transitions lead to a place that depends on the action, half to a random one."""
    bonus, rng = ICMBonus(VECTORS, ACTIONS, lr=1e-3, min_size=50, batch_size=32), np.random.default_rng(0)
    base, quiet, noisy = np.zeros(5), [], []
    for step in range(500):
        noise = step % 2
        here, action = base.copy(), int(rng.integers(4))
        here[4] = 1.0 if noise else -1.0
        there = here.copy()
        there[:4] = rng.choice([-1, 1], 4) if noise else np.eye(4)[action]
        known = Visits(None, np.array([action]), there[None], terminated=np.array([False]))
        (noisy if noise else quiet).append(bonus.observe(here[None], known)[0])
        bonus.update()
    assert np.mean(quiet[-40:]) < 0.25 * np.mean(noisy[-40:])


@pytest.mark.parametrize("detach", [True, False])
def test_the_forward_loss_trains_the_features_only_if_published(detach):
    bonus = ICMBonus(IMAGES, ACTIONS, detach=detach, **SMALL)
    observations, visits = next(walk(IMAGES, 1))
    errors, _ = bonus._errors(*map(bonus._sent, (observations, visits.actions, visits.next_observations)))
    errors.sum().backward()
    assert (next(bonus._inverse.features.parameters()).grad is None) == detach


def test_only_the_newest_observations_are_remembered(monkeypatch):
    monkeypatch.setattr(icm, "MAX_REMEMBERED", 3)
    bonus = ICMBonus(IMAGES, ACTIONS, **SMALL)
    for observations, visits in walk(IMAGES, 20, num_envs=1, numbers=10):
        bonus.observe(observations, visits)
        assert bonus.novelty(observations)[0] > 0
    assert len(bonus._latest) == 3


@KINDS
def test_it_resumes(space, look):
    assert_resumes(lambda seed: ICMBonus(space, ACTIONS, seed=seed, **SMALL), space)


def test_asking_changes_nothing():
    one, other = (ICMBonus(IMAGES, ACTIONS, **SMALL) for _ in range(2))
    assert_asking_changes_nothing(one, other, IMAGES)


def test_transitions_are_needed():
    with pytest.raises(UsageError, match="bonus=icm needs `actions`"):
        ICMBonus(IMAGES, ACTIONS).observe(image(0)[None])
