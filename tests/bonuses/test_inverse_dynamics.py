import math

import gymnasium as gym
import numpy as np
import pytest
import torch
from looks import IMAGES, VECTORS

from cfn.bonuses.inverse_dynamics import Actions, InverseDynamics
from cfn.errors import UsageError

CONTINUOUS = gym.spaces.Box(-1, 1, (3,), np.float32)


@pytest.mark.parametrize(("side", "features"), [(84, 288), (42, 288), (21, 128)])
def test_the_networks_are_the_published_ones(side, features):
    model = InverseDynamics(gym.spaces.Box(0, 255, (side, side), np.uint8), 4)
    assert model.size == features
    shapes = [tuple(p.shape) for p in model.parameters() if p.ndim > 1]
    assert shapes == [(32, 1, 3, 3), *[(32, 32, 3, 3)] * 3, (256, 2 * features), (4, 256)]
    phi, _, outputs = model(torch.zeros(2, 1, side, side), torch.zeros(2, 1, side, side))
    assert (phi.shape, outputs.shape) == ((2, features), (2, 4))


def test_before_learning_all_actions_are_equally_likely():
    model, actions = InverseDynamics(VECTORS, 4), Actions("mine", gym.spaces.Discrete(4))
    *_, outputs = model(torch.randn(50, 5), torch.randn(50, 5))
    assert float(actions.loss(outputs, torch.randint(4, (50,)))) == pytest.approx(math.log(4), abs=0.01)


def test_discrete_actions_may_begin_anywhere_and_continuous_ones_are_vectors():
    discrete = Actions("mine", gym.spaces.Discrete(3, start=5))
    numbers = torch.from_numpy(discrete.numbers(np.array([5, 7])))
    assert discrete.encoded(numbers).tolist() == [[1, 0, 0], [0, 0, 1]]
    continuous = Actions("mine", CONTINUOUS)
    numbers = torch.from_numpy(continuous.numbers(np.array([[0.5, 0, -1]])))
    assert continuous.encoded(numbers).tolist() == [[0.5, 0, -1]]
    assert float(continuous.loss(torch.tensor([[0.5, 2, 0]]), numbers)) == pytest.approx(2.5)


def test_other_actions_are_refused():
    with pytest.raises(UsageError, match=r"^bonus=mine learns from actions, which must be discrete or vectors, not"):
        Actions("mine", gym.spaces.MultiDiscrete([2, 3]))
    with pytest.raises(UsageError, match="neither images"):
        InverseDynamics(gym.spaces.Discrete(3), 4)


@pytest.mark.thorough
@pytest.mark.parametrize("space", [IMAGES, VECTORS], ids=["images", "vectors"])
def test_it_learns_which_action_lies_between_two_states(space):
    torch.manual_seed(0)
    model = InverseDynamics(space, 2)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    shape = (64, 1, 16, 16) if len(space.shape) == 2 else (64, 5)
    for _ in range(150):
        before, actions = torch.rand(shape), torch.randint(2, (64,))
        after = before + (2 * actions - 1).reshape(-1, *[1] * (len(shape) - 1)) * 0.3
        loss = torch.nn.functional.cross_entropy(model(before, after)[2], actions)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.2
