import numpy as np
import pytest
import torch
from looks import IMAGES, KINDS, VECTORS, image
from walking import ACTIONS, assert_asking_changes_nothing, assert_resumes, walk

from cfn.bonuses.successor import SuccessorBonus, inverse_norm, successor_target
from cfn.errors import BadValueError, UsageError

SMALL = {"features": 16, "min_size": 8, "batch_size": 4, "capacity": 30, "update_period": 1, "target_period": 5}


def test_a_self_loop_pays_2_then_8_sevenths_then_0_865():
    """psi += eta (target - psi) with eta = gamma = 0.5: psi is 0.5, 0.875, 1.156."""
    phi, psi, paid = torch.ones(1, 1), torch.zeros(1, 1), []
    for _ in range(3):
        psi = psi + 0.5 * (successor_target(phi, psi, torch.tensor([0.5])) - psi)
        paid.append(float(inverse_norm(psi)))
    assert float(psi) == pytest.approx(1.156, abs=1e-3)
    assert paid == pytest.approx([2, 1.143, 0.865], abs=1e-3)


def test_the_target_has_features_of_norm_1_and_ends_with_the_episode():
    phi, after = torch.tensor([[3.0, 4.0], [0.0, 2.0]]), torch.ones(2, 2)
    wanted = successor_target(phi, after, 0.5 * torch.tensor([1.0, 0.0]))
    assert wanted.numpy() == pytest.approx(np.array([[1.1, 1.3], [0, 1]]))
    assert float(inverse_norm(torch.zeros(1, 3))) == pytest.approx(1000)


def test_rewards_are_those_of_the_target_network():
    bonus = SuccessorBonus(IMAGES, ACTIONS, scale=0.5, **SMALL)
    steps = list(walk(IMAGES, 30))
    before = bonus.novelty(steps[0][0])
    for i, (observations, visits) in enumerate(steps):
        assert bonus.observe(observations, visits) == pytest.approx(0.5 * bonus.novelty(observations))
        if bonus.update() and bonus._updates < 5:
            assert bonus.novelty(steps[0][0]).tolist() == before.tolist(), f"copied early, in step {i}"
        if bonus._updates == 5:
            assert bonus.novelty(steps[0][0]).tolist() != before.tolist()
            break
    assert bonus._updates == 5


@pytest.mark.thorough
def test_visited_states_become_less_novel():
    bonus = SuccessorBonus(VECTORS, ACTIONS, lr=1e-3, **SMALL | {"capacity": 1000, "batch_size": 32})
    first = bonus.novelty(np.stack([VECTORS.low] * 1))
    for observations, visits in walk(VECTORS, 150, numbers=4):
        bonus.observe(observations, visits)
        bonus.update()
    seen = bonus.novelty(observations)
    assert first[0] > 0
    assert seen.max() < 1, "|psi| grows towards 1 / (1 - gamma)"


@KINDS
def test_it_resumes(space, look):
    assert_resumes(lambda seed: SuccessorBonus(space, ACTIONS, seed=seed, **SMALL), space)


def test_asking_changes_nothing():
    one, other = (SuccessorBonus(IMAGES, ACTIONS, **SMALL) for _ in range(2))
    assert_asking_changes_nothing(one, other, IMAGES)


def test_bad_use_is_refused():
    with pytest.raises(BadValueError, match="capacity: 3 transitions are fewer than batch_size=4 and min_size=8 need"):
        SuccessorBonus(IMAGES, ACTIONS, **SMALL | {"capacity": 3})
    with pytest.raises(UsageError, match="bonus=successor needs `actions`"):
        SuccessorBonus(IMAGES, ACTIONS, **SMALL).observe(image(0)[None])
