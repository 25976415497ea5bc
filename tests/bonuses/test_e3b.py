import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from looks import IMAGES, KINDS, VECTORS, image
from walking import ACTIONS, assert_asking_changes_nothing, assert_resumes, walk

from cfn.bonuses.e3b import E3BBonus
from cfn.bonuses.visits import Visits
from cfn.errors import UsageError

SMALL = {"min_size": 8, "batch_size": 4, "capacity": 30}


def visits(begins, look=0, rows=1):
    flags = np.full(rows, begins)
    following = np.stack([image(look)] * rows)
    return Visits(None, np.zeros(rows, int), following, flags, np.zeros(rows, bool), np.zeros(rows, bool))


def test_equal_features_pay_as_one_hot_ones():
    """h'Mh with one direction h: |h|^2 / (ridge + n |h|^2), which is 1 / (n + ridge) for |h| = 1."""
    bonus = E3BBonus(IMAGES, ACTIONS, normalize=False, ridge=0.1)
    norm = float(bonus.novelty(image(3)[None])[0]) * 0.1
    paid = [bonus.observe(image(3)[None], visits(n == 0))[0] for n in range(4)]
    assert paid == pytest.approx([norm / (0.1 + n * norm) for n in range(4)], rel=1e-4)
    assert bonus.observe(image(3)[None], visits(True))[0] == pytest.approx(paid[0]), "the episode is forgotten"


def test_every_environment_has_an_episode_of_its_own():
    together = E3BBonus(VECTORS, ACTIONS, num_envs=2, normalize=False)
    alone = [E3BBonus(VECTORS, ACTIONS, normalize=False) for _ in range(2)]
    for observations, step in walk(VECTORS, 20):
        rewards = together.observe(observations, step)
        for row, bonus in enumerate(alone):
            one = slice(row, row + 1)
            known = (step.actions, step.next_observations, step.begins, step.terminated, step.truncated)
            own = bonus.observe(observations[one], Visits(None, *(field[one] for field in known)))
            assert rewards[row] == pytest.approx(own[0], rel=1e-5)


def test_features_are_frozen_until_the_episode_ends():
    bonus = E3BBonus(IMAGES, ACTIONS, lr=0.01, **SMALL)
    bonus.observe(image(0)[None], visits(True))
    frozen = copy.deepcopy(bonus._frozen.state_dict())
    for n in range(10):
        bonus.observe(image(n)[None], visits(False))
        bonus.update()
    assert all(torch.equal(frozen[k], v) for k, v in bonus._frozen.state_dict().items())
    bonus.observe(image(0)[None], visits(True))
    current = bonus._model.features.state_dict()
    assert all(torch.equal(current[k], v) for k, v in bonus._frozen[0].state_dict().items())
    assert any(not torch.equal(frozen[k], v) for k, v in bonus._frozen.state_dict().items())


def test_rewards_are_divided_by_their_standard_deviation():
    raw, normalized = (E3BBonus(IMAGES, ACTIONS, normalize=flag, scale=0.5) for flag in (False, True))
    paid = []
    for n in range(6):
        paid.append(raw.observe(image(n)[None], visits(n == 0))[0] / 0.5)
        reward = normalized.observe(image(n)[None], visits(n == 0))[0]
    samples = np.array([*paid, 0.0])
    variance = np.mean(np.concatenate([(samples - samples.mean()) ** 2])) + 1 / len(
        samples
    )  # one sample: mean 0, var 1
    assert reward == pytest.approx(0.5 * paid[-1] / variance**0.5)


@KINDS
def test_it_resumes(space, look):
    assert_resumes(lambda seed: E3BBonus(space, ACTIONS, seed=seed, num_envs=2, **SMALL), space)


def test_it_resumes_with_continuous_actions():
    space = gym.spaces.Box(-1, 1, (1,), np.float32)
    bonus = E3BBonus(VECTORS, space, num_envs=2, **SMALL)
    for observations, step in walk(VECTORS, 12):
        known = (step.next_observations, step.begins, step.terminated, step.truncated)
        bonus.observe(observations, Visits(None, step.actions[:, None] / 4.0, *known))
    assert bonus.update()["bonus/loss"] > 0


def test_asking_changes_nothing():
    one, other = (E3BBonus(IMAGES, ACTIONS, num_envs=2, **SMALL) for _ in range(2))
    assert_asking_changes_nothing(one, other, IMAGES)


def test_bad_use_is_refused():
    bonus = E3BBonus(IMAGES, ACTIONS)
    with pytest.raises(UsageError, match=r"^bonus=e3b needs `begins` of each visit"):
        bonus.observe(image(0)[None])
    with pytest.raises(UsageError, match=r"was made for 1, not for 3: construct it with num_envs=3$"):
        bonus.observe(np.stack([image(0)] * 3), visits(True, rows=3))
