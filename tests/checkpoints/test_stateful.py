import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from looks import IMAGES, VECTORS

from cfn.agents.rainbow import RainbowAgent
from cfn.agents.sac import SACAgent
from cfn.bonuses.base import Bonus
from cfn.bonuses.coin_flip import CoinFlipBonus
from cfn.bonuses.counts import CountBonus
from cfn.bonuses.noveld import NovelDBonus
from cfn.bonuses.pixelcnn import PixelCNNBonus
from cfn.bonuses.rnd import RNDBonus
from cfn.checkpoints.stateful import load_optimizer, without_state
from cfn.nn.optim import RMSProp

OPTIMIZERS = {"adam": lambda p: torch.optim.Adam(p, 0.1, fused=True), "rmsprop": lambda p: RMSProp(p, 0.1)}


def stepped(make):
    parameters = [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2, 2))]
    optimizer = make(parameters)
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer, parameters


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_an_optimiser_takes_over_a_state_that_fits(make):
    (one, first), (other, second) = stepped(make), stepped(make)
    one.step()
    load_optimizer(other, copy.deepcopy(one.state_dict()))
    with torch.no_grad():
        for ours, theirs in zip(second, first, strict=True):
            ours.copy_(theirs)
    for optimizer in (one, other):
        optimizer.step()
    assert [p.tolist() for p in first] == [p.tolist() for p in second]


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("moment", [torch.zeros(1), torch.zeros(()), torch.zeros(4), torch.zeros(2, 3), [0.0] * 4])
def test_moments_of_another_shape_are_refused(make, moment):
    """Fused Adam would write beyond those that are too small."""
    optimizer, _ = stepped(make)
    for name in optimizer.state_dict()["state"][1].keys() - {"step"}:
        state = copy.deepcopy(optimizer.state_dict())
        state["state"][1][name] = moment
        with pytest.raises(ValueError, match=rf"{name} of optimiser parameter 1 does not have the shape \(2, 2\)"):
            load_optimizer(optimizer, state)
    with pytest.raises(IndexError):
        load_optimizer(optimizer, {**state, "state": {7: {"momentum": moment}}})


def test_a_step_is_one_number():
    optimizer, _ = stepped(OPTIMIZERS["adam"])
    state = copy.deepcopy(optimizer.state_dict())
    state["state"][0]["step"] = torch.zeros(0)
    with pytest.raises(ValueError, match="step of optimiser parameter"):
        load_optimizer(optimizer, state)


SMALL = {"capacity": 20, "min_size": 4, "batch_size": 4}
LEARNERS = {
    "rainbow": lambda: RainbowAgent(VECTORS, gym.spaces.Discrete(2), hidden=(4,), **SMALL),
    "sac": lambda: SACAgent(VECTORS, gym.spaces.Box(-1, 1, (2,)), hidden=(4,), **SMALL),
    "cfn": lambda: CoinFlipBonus(VECTORS, hidden=(4,), **SMALL),
    "rnd": lambda: RNDBonus(VECTORS),
    "pixelcnn": lambda: PixelCNNBonus(IMAGES, side=8),
}


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
def test_every_learner_looks_at_what_its_optimiser_is_given(make):
    learner = make()
    for parameter in (p for group in learner._optimizer.param_groups for p in group["params"]):
        parameter.grad = torch.zeros_like(parameter)
    learner._optimizer.step()
    state = copy.deepcopy(learner.state_dict())
    for moments in state["optimizer"]["state"].values():
        moments |= {name: torch.zeros(1, 1, 1) for name in moments}
    with pytest.raises(ValueError, match="of optimiser parameter 0 does not have the shape"):
        learner.load_state_dict(state)


@pytest.mark.parametrize("name", ["rainbow", "cfn"])
def test_a_batch_drawn_ahead_that_is_not_of_its_buffer_is_refused(name):
    """On the CPU too, where there is none ahead, but one from a GPU may be loaded."""
    learner, rng = LEARNERS[name](), np.random.default_rng(0)
    for _ in range(8):
        look = rng.uniform(-1, 1, (1, 5))
        if name == "cfn":
            learner.observe(look)
        else:
            learner.observe(look, np.zeros(1, int), np.zeros(1), look, np.array([True]), np.array([False]))
    state = copy.deepcopy(learner.state_dict())
    batch = learner._replay.sample(4, rng)
    state["memory"]["batches"] = list(batch)
    learner.load_state_dict(copy.deepcopy(state))
    assert learner._batches.state_dict()[0].tolist() == batch.entries.tolist()
    state["memory"]["batches"] = list(batch._replace(entries=batch.entries + 500))
    with pytest.raises(ValueError, match="was not sampled from this buffer"):
        learner.load_state_dict(state)


def test_a_bonus_inside_another_is_known_to_have_no_state():
    class Forgetful(CountBonus):
        state_dict = Bonus.state_dict

    assert without_state(CountBonus(), Bonus) is None
    assert without_state(NovelDBonus(VECTORS, CountBonus()), Bonus) is None
    assert without_state(Forgetful(), Bonus) == "Forgetful"
    assert without_state(NovelDBonus(VECTORS, Forgetful()), Bonus) == "Forgetful"
