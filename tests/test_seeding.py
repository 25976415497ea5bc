import copy
import random

import numpy as np
import pytest
import torch

from cfn import seeding


def test_a_stream_is_known_by_its_name():
    draws = {path: seeding.generator(7, *path).integers(2**60) for path in [("agent",), ("bonus",), ("train", 0, 1)]}
    assert len(set(draws.values())) == 3
    assert draws["agent",] == seeding.generator(7, "agent").integers(2**60)
    assert draws["agent",] != seeding.generator(8, "agent").integers(2**60)


def test_integers_fit_everyone_and_do_not_repeat():
    seeds = {
        seeding.integer(seed, "train", env, episode) for seed in range(5) for env in range(5) for episode in range(40)
    }
    assert len(seeds) == 1000
    assert all(0 <= s < 2**31 for s in seeds)


DRAWS = {"python": random.random, "numpy": np.random.random, "torch": lambda: torch.rand(()).item()}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_the_generators_of_nobody_are_seeded(draw):
    draws = []
    for seed in (0, 0, 1):
        seeding.seed_everything(seed)
        draws.append([draw() for _ in range(3)])
    assert draws[0] == draws[1] != draws[2]


CPU = torch.device("cpu")


def test_their_states_can_be_taken_over():
    states = copy.deepcopy(seeding.global_states(CPU))
    first = [draw() for draw in DRAWS.values()]
    seeding.set_global_states(states, CPU)
    assert [draw() for draw in DRAWS.values()] == first


@pytest.mark.parametrize("position", [-1, 625, 10**9])
def test_a_position_that_numpy_would_not_look_at_is_refused(position):
    states = copy.deepcopy(seeding.global_states(CPU))
    states["numpy"]["state"]["pos"] = position
    with pytest.raises(ValueError, match="invalid state of NumPy's generator"):
        seeding.set_global_states(states, CPU)
