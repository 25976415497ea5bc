"""Observations as network input: normalised by what was visited, saved and restored."""

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from looks import IMAGES

from cfn.agents.rainbow import RainbowAgent
from cfn.agents.sac import SACAgent
from cfn.bonuses.coin_flip import CoinFlipBonus
from cfn.errors import BadValueError
from cfn.nn import networks
from cfn.nn.network_input import CLIP, NetworkInput

CPU = torch.device("cpu")
VECTORS = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
SMALL = {"capacity": 60, "min_size": 10, "batch_size": 8, "hidden": (8,), "normalize_observations": True}
LEARNERS = {
    "cfn": lambda seed: CoinFlipBonus(VECTORS, seed=seed, d=4, **SMALL),
    "cfn without a prior": lambda seed: CoinFlipBonus(VECTORS, seed=seed, d=4, prior=False, **SMALL),
    "rainbow": lambda seed: RainbowAgent(VECTORS, gym.spaces.Discrete(2), seed=seed, **SMALL),
    "sac": lambda seed: SACAgent(VECTORS, gym.spaces.Box(-1, 1, (2,)), seed=seed, **SMALL),
}


def look(number):
    """A vector whose entries have very different scales."""
    rng = np.random.default_rng(number)
    return (np.array([1e-2, 1.0, 1e4]) * rng.normal(size=(1, 3)) + np.array([0, 5, -1e5])).astype(np.float32)


def losses(learner, numbers):
    found = []
    for number in numbers:
        if isinstance(learner, CoinFlipBonus):
            learner.observe(look(number))
        else:
            actions = learner.act(look(number))
            learner.observe(look(number), actions, np.ones(1), look(number + 1), *np.zeros((2, 1), bool))
        found += [float(value) for value in learner.update().values()]
    return found


def test_entries_of_any_scale_have_mean_0_and_deviation_1():
    inputs = NetworkInput(VECTORS, True, CPU)
    visited = np.concatenate([look(number) for number in range(500)])
    for part in np.array_split(visited, 7):
        inputs.count(part)
    normalized = inputs.of(visited).numpy()
    assert np.allclose(normalized.mean(axis=0), 0, atol=0.01)
    assert np.allclose(normalized.std(axis=0), 1, atol=0.01)
    assert np.allclose(inputs.of(visited + np.float32(1e9)).numpy(), CLIP)


def test_a_unit_of_measurement_does_not_matter():
    metres, millimetres = (NetworkInput(VECTORS, True, CPU) for _ in range(2))
    for number in range(100):
        metres.count(look(number))
        millimetres.count(look(number) * np.float32(1000))
    ours, theirs = metres.of(look(7)), millimetres.of(look(7) * np.float32(1000))
    assert torch.allclose(ours, theirs, rtol=1e-2, atol=1e-2)


def test_without_it_observations_are_passed_on():
    inputs = NetworkInput(VECTORS, False, CPU)
    inputs.count(look(0))
    assert torch.equal(inputs.of(look(1)), networks.to_tensor(look(1), CPU))
    assert inputs.state_dict() == {}


def test_images_are_refused_with_the_key():
    with pytest.raises(BadValueError, match="only vectors are normalised"):
        CoinFlipBonus(IMAGES, normalize_observations=True)


def test_auto_normalises_vectors_and_leaves_images_as_they_are():
    assert not NetworkInput(IMAGES, "auto", CPU).normalize
    vectors, plain = NetworkInput(VECTORS, "auto", CPU), NetworkInput(VECTORS, True, CPU)
    for inputs in (vectors, plain):
        inputs.count(look(0))
    assert torch.equal(vectors.of(look(1)), plain.of(look(1)))
    assert CoinFlipBonus(IMAGES, normalize_observations="auto", capacity=100, min_size=10, batch_size=10).novelty(
        np.zeros((1, *IMAGES.shape), np.uint8)
    ) == [0]


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
def test_learners_resume_exactly(make):
    one, other = make(1), make(2)
    losses(one, range(40))
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    assert losses(one, range(40, 80)) == losses(other, range(40, 80)) != []


def test_statistics_of_another_size_are_refused():
    state = NetworkInput(gym.spaces.Box(-1, 1, (4,), np.float32), True, CPU).state_dict()
    with pytest.raises(ValueError, match="another size"):
        NetworkInput(VECTORS, True, CPU).load_state_dict(state)


def test_the_prior_of_a_stored_visit_is_that_of_the_same_state_now():
    """The statistics move after a visit is stored; the batch must not use the prior of then."""
    bonus = CoinFlipBonus(VECTORS, d=4, **SMALL)
    for number in range(30):
        bonus.observe(look(number))
    batch = bonus._batches.take()
    raw_prior = lambda frames: bonus._prior.complete(frames, bonus._prior.known(frames))  # noqa: E731
    before = bonus._prior.of_batch(batch.frames, batch.features)
    assert np.allclose(before, raw_prior(batch.frames))
    bonus._input.count(1e5 * look(99))
    after = bonus._prior.of_batch(batch.frames, batch.features)
    assert not np.allclose(before, after)
    assert np.allclose(after, raw_prior(batch.frames))
