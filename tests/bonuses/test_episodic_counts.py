import copy

import gymnasium as gym
import numpy as np
import pytest
from looks import IMAGES, VECTORS, image

from cfn.bonuses.episodic_counts import EpisodicCounts
from cfn.bonuses.first_visit import FirstVisitBonus
from cfn.bonuses.visits import Visits
from cfn.errors import UsageError


def test_each_environment_counts_its_own_episode():
    counts = EpisodicCounts("mine", IMAGES, 2, 0.1)
    both = np.stack([image(1), image(1)])
    assert counts.visit(both).tolist() == [1, 1]
    counts.clear(np.array([False, True]))
    assert counts.visit(both).tolist() == [2, 1]
    assert counts.visit(both, np.array([True, False])).tolist() == [3, 0]
    assert counts.visit(np.stack([image(2), image(1)])).tolist() == [1, 2]


def test_vectors_are_equal_within_a_bin():
    counts = EpisodicCounts("mine", gym.spaces.Box(-1, 1, (2,), np.float64), 1, 0.5)
    seen = [[0.1, 0.6], [0.4, 0.9], [0.6, 0.6], [-0.1, 0.6]]
    assert [counts.visit(np.array([one]))[0] for one in seen] == [1, 2, 1, 1]


def test_its_state_can_be_saved():
    one, other = (EpisodicCounts("mine", VECTORS, 2, 0.1) for _ in range(2))
    one.visit(np.ones((2, 5)))
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    assert other.visit(np.ones((2, 5))).tolist() == [2, 2]
    with pytest.raises(ValueError, match="of 2 environments were saved, not of 1"):
        EpisodicCounts("mine", VECTORS, 1, 0.1).load_state_dict(one.state_dict())


def test_bad_use_is_refused():
    with pytest.raises(UsageError, match="made for 2, not for 3"):
        EpisodicCounts("mine", IMAGES, 2, 0.1).visit(np.stack([image(1)] * 3))
    with pytest.raises(UsageError, match="neither images"):
        EpisodicCounts("mine", gym.spaces.Discrete(3), 2, 0.1)


def test_a_first_visit_is_paid_once_per_episode():
    bonus = FirstVisitBonus(IMAGES, scale=0.5)
    paid = [bonus.observe(image(n)[None], Visits(begins=np.array([b])))[0] for n, b in [(1, 1), (1, 0), (2, 0), (1, 1)]]
    assert paid == [0.5, 0, 0.5, 0.5]
    assert bonus.novelty(image(1)[None]).tolist() == [1]
    other = FirstVisitBonus(IMAGES, scale=0.5)
    other.load_state_dict(copy.deepcopy(bonus.state_dict()))
    assert other.observe(image(1)[None], Visits(begins=np.array([False])))[0] == 0
    with pytest.raises(UsageError, match="bonus=first_visit needs `begins`"):
        bonus.observe(image(1)[None])
