import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from looks import IMAGES, KINDS, VECTORS, image

from cfn.bonuses.rnd import RNDBonus
from cfn.errors import UsageError

INPUTS = pytest.mark.parametrize("inputs", ["published", "standard"])
PAIRS = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)


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


@pytest.mark.thorough
@INPUTS
@KINDS
def test_what_is_seen_often_becomes_less_novel_than_what_is_not(space, look, inputs):
    bonus = RNDBonus(space, seed=1, lr=1e-3, inputs=inputs)
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
    errors, inputs = copy.deepcopy(bonus._error_stats), copy.deepcopy(bonus._input_stats)
    inputs.update(image(3)[None] / 255.0)
    reward = bonus.observe(image(3)[None])
    assert bonus._input_stats.mean == pytest.approx(inputs.mean)
    error = bonus.novelty(image(3)[None])
    errors.update(error)
    assert reward == pytest.approx(0.5 * (error - errors.mean) / errors.variance)


def test_published_inputs_equal_those_computed_by_hand():
    """Normalised by the mean and variance of earlier inputs, each divided by the variance itself and clipped."""
    steps = [[2.0, 30.0], [1.0, 30.0], [4.0, -90.0]]
    # first entry, t = 1: input 2 / 1; then mean 2, v = (1 + 2^2 / 2) / 2 = 3/2
    #              t = 2: input (1 - 2) / (3/2) = -2/3, delta -8/3; mean 2/3, v = (2 * 3/2 + 64/9 * 2/3) / 3 = 209/81
    #              t = 3: input (4 - 2/3) / (209/81) = 270/209
    # second,      t = 1: input 30, clipped to 5; then mean 5, v = (1 + 5^2 / 2) / 2 = 27/4
    #              t = 2: input 25 / (27/4) = 100/27; delta -35/27; mean 5 - 35/54 = 235/54
    #              t = 3: far below, clipped to -5
    expected = [[2, 5], [-2 / 3, 100 / 27], [270 / 209, -5]]
    alone, together = (RNDBonus(PAIRS, inputs="published") for _ in range(2))
    for step in steps:
        alone.observe(np.array([step]))
    together.observe(np.array(steps))
    assert np.stack(alone._pending) == pytest.approx(np.array(expected), rel=1e-6)
    assert np.stack(together._pending).tolist() == np.stack(alone._pending).tolist()
    assert together._input_stats.mean.tolist() == alone._input_stats.mean.tolist()
    assert together._input_stats.variance.tolist() == alone._input_stats.variance.tolist()


def test_published_rewards_equal_those_computed_by_hand():
    bonus = RNDBonus(PAIRS, scale=0.5, inputs="published")
    first, second = np.array([[2.0, 0.3]]), np.array([[-1.0, 0.4]])
    e1 = float(bonus.novelty(first)[0])
    assert bonus.observe(first)[0] == 0, "the first error is its own mean"
    assert bonus.update() == {"bonus/loss": pytest.approx(e1)}, "learned from the input that the error is of"
    e2 = float(bonus.novelty(second)[0])
    v1 = (1 + e1**2 / 2) / 2
    v2 = (2 * v1 + (e2 - e1) ** 2 * 2 / 3) / 3
    assert bonus.observe(second)[0] == pytest.approx(0.5 * (e2 - (e1 + e2) / 2) / v2)
    assert bonus.update() == {"bonus/loss": pytest.approx(e2)}


def test_standard_inputs_equal_those_computed_by_hand():
    """Burda et al.'s: divided by the standard deviation, of observations that include this one; 0 and 1 at first."""
    bonus = RNDBonus(PAIRS, inputs="standard")
    # first entry: (0 with variance 1), 2: mean 1, v = (1 + 4) / 2 - 1^2 = 3/2
    #              and -5: mean -1, v = (1 + 4 + 25) / 3 - 1 = 9
    #              and 3: mean 0, v = (1 + 4 + 25 + 9) / 4 = 39/4
    # second:      30: mean 15, v = 901 / 2 - 225 = 451/2; 30: mean 20, v = 1801 / 3 - 400 = 601/3
    #              and 300: mean 90, v = 91801 / 4 - 8100 = 59401/4
    expected = [
        [1 / 1.5**0.5, 15 / 225.5**0.5],
        [-4 / 3, 10 / (601 / 3) ** 0.5],
        [3 / 9.75**0.5, 210 / (59401 / 4) ** 0.5],
    ]
    for step, wanted in zip(([2.0, 30.0], [-5.0, 30.0], [3.0, 300.0]), expected, strict=True):
        observation = np.array([step])
        bonus.observe(observation)
        assert bonus._inputs(observation)[0] == pytest.approx(wanted, rel=1e-6)
    assert bonus._inputs(np.array([[1000.0, -1000.0]])).tolist() == [[5, -5]]


def test_the_gradient_step_is_adams_with_the_published_epsilon():
    """The first step on a gradient g is lr * g / (|g| + 1e-5)."""
    bonus = RNDBonus(PAIRS, lr=1e-3, inputs="published")
    bonus.observe(np.array([[2.0, 0.3]]))
    before = copy.deepcopy(bonus._predictor)
    inputs = torch.from_numpy(bonus._pending[0][None])
    (before(inputs) - bonus._target(inputs)).square().mean().backward()
    bonus.update()
    gradients = torch.cat([parameter.grad.flatten() for parameter in before.parameters()])
    assert gradients.abs().median() < 1e-3, "otherwise epsilon could not be told from 0"
    for old, new in zip(before.parameters(), bonus._predictor.parameters(), strict=True):
        step = 1e-3 * old.grad / (old.grad.abs() + 1e-5)
        assert (old - new).detach().numpy() == pytest.approx(step.numpy(), abs=2e-6)


@pytest.mark.parametrize(("inputs", "expected"), [("published", (0.5, 1, 2)), ("standard", (1, 1, 1))])
def test_deviations_become_their_cube_roots_when_published_and_1_by_the_standard(inputs, expected):
    """A fixed point: the deviation s of inputs is sigma / v with v = s^2."""
    bonus = RNDBonus(gym.spaces.Box(-np.inf, np.inf, (3,), np.float64), inputs=inputs)
    vectors = np.random.default_rng(0).normal(0, (0.125, 1, 8), (4000, 3))
    bonus.observe(vectors)
    assert bonus._inputs(vectors).std(axis=0) == pytest.approx(expected, rel=0.05)


def test_pixels_that_never_change_saturate_when_published_and_vanish_by_the_standard():
    picture = np.zeros((16, 16), np.uint8)
    picture[:4], picture[4:8] = 255, 4
    inputs = {}
    for name in ("published", "standard"):
        bonus = RNDBonus(IMAGES, inputs=name)
        bonus.observe(picture[None])
        if name == "published":
            assert (bonus._pending[0][:9:4, 0] == [5, 4, 0]).all(), "raw values, not divided by 255"
        for _ in range(200):
            bonus.observe(picture[None])
        inputs[name] = bonus._inputs(picture[None])[0]
    assert (inputs["published"][:4] == 5).all()
    assert (inputs["published"][8:] == 0).all()
    assert np.abs(inputs["standard"]).max() < 0.1


@INPUTS
def test_the_target_is_never_trained_and_asking_changes_nothing(inputs):
    bonus = RNDBonus(IMAGES, inputs=inputs)
    target = copy.deepcopy(bonus._target.state_dict())
    for n in range(5):
        bonus.observe(image(n)[None])
        bonus.update()
    before = copy.deepcopy(bonus._predictor.state_dict())
    stats = copy.deepcopy((bonus._input_stats, bonus._error_stats))
    first, second = (bonus.novelty(image(n % 5)[None]) for n in (1, 6))
    assert first == second
    assert all(torch.equal(target[k], v) for k, v in bonus._target.state_dict().items())
    assert all(torch.equal(before[k], v) for k, v in bonus._predictor.state_dict().items())
    for then, now in zip(stats, (bonus._input_stats, bonus._error_stats), strict=True):
        assert then.count == now.count == 6
        assert (then.mean == now.mean).all()
        assert (then.variance == now.variance).all()


@INPUTS
@KINDS
def test_its_state_can_be_saved(space, look, inputs):
    one, other = RNDBonus(space, seed=0, inputs=inputs), RNDBonus(space, seed=5, inputs=inputs)
    for n in range(10):
        one.observe(look(n)[None])
        one.update()
    one.observe(np.stack([look(n) for n in range(3)]))  # two of them are still to be learned from
    one.update()
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for n in range(5):
        assert one.observe(look(n)[None]) == other.observe(look(n)[None])
        assert one.update() == other.update()


def test_other_observations_are_refused():
    with pytest.raises(UsageError, match="neither images"):
        RNDBonus(gym.spaces.Discrete(3))
