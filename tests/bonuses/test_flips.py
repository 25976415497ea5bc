"""Balanced coins: fair one by one, unbiased with any prediction, and less noisy by as much as the theory says."""

import numpy as np
import pytest

from cfn.bonuses.flips import CANDIDATES, are_coins, balanced, draw
from cfn.bonuses.theory import balanced_share, variance_of_balanced_inverse_count, variance_of_inverse_count

D, N, CHOICES = 20, 12, 24


def estimates(predict, trials=3000, n=N, d=D, candidates=CHOICES, seed=0):
    """|z_n|^2 / d of many states after n visits, with the predictions that `predict` makes of their sums."""
    rng = np.random.default_rng(seed)
    sums = np.zeros((trials, d), np.float32)
    for _ in range(n):
        sums += balanced(rng, predict(rng, sums), candidates)
    return np.mean((sums / n) ** 2, axis=1)


def perfect(_, sums):
    return sums


def blind(rng, sums):
    return rng.standard_normal(sums.shape, np.float32)


def stale(_, sums):
    """The same wrong prediction at every visit, as of a network that does not learn."""
    return np.broadcast_to(np.linspace(-1, 2, sums.shape[1], dtype=np.float32), sums.shape)


def noisy(share):
    def predict(rng, sums):
        noise = rng.standard_normal(sums.shape, np.float32)
        noise *= share * np.linalg.norm(sums, axis=1, keepdims=True) / np.linalg.norm(noise, axis=1, keepdims=True)
        return sums + noise

    return predict


@pytest.mark.parametrize("predict", [perfect, blind, stale, noisy(0.3)], ids=["perfect", "blind", "stale", "noisy"])
def test_the_inverse_count_is_unbiased_whatever_the_prediction(predict):
    found = estimates(predict)
    error = max(float(found.std()) / len(found) ** 0.5, 1e-4)
    assert float(found.mean()) == pytest.approx(1 / N, abs=4 * error)


@pytest.mark.parametrize(("noise", "tolerance"), [(0.1, 0.25), (0.3, 0.15), (1.0, 0.1)])
def test_the_variance_is_that_of_the_theory(noise, tolerance):
    """Noise orthogonal to z, of `noise` times its length, turns f by arctan(noise)."""
    share = balanced_share((1 + noise**2) ** -0.5, D, CHOICES)
    expected = variance_of_balanced_inverse_count(N, share, D)
    assert float(estimates(noisy(noise)).var()) == pytest.approx(expected, rel=tolerance)


def test_a_perfect_prediction_leaves_almost_no_noise():
    spread = np.sqrt(estimates(perfect, n=40, trials=500, candidates=CANDIDATES)).std() * 40**0.5
    independent = variance_of_inverse_count(40, d=D) ** 0.5 * 40 / 2
    assert spread < 0.03 * independent


@pytest.mark.parametrize("predict", [blind, stale])
def test_a_prediction_that_knows_nothing_costs_little(predict):
    expected = variance_of_balanced_inverse_count(N, balanced_share(0.0, D, CHOICES), D)
    assert expected == pytest.approx(variance_of_inverse_count(N, d=D) * D / (D - 1), rel=0.01)
    assert float(estimates(predict).var()) == pytest.approx(expected, rel=0.12)


def test_independent_coins_are_the_case_of_a_share_of_one():
    for n in (1, 2, 7, 100):
        assert variance_of_balanced_inverse_count(n, 1.0, 5) == pytest.approx(variance_of_inverse_count(n, d=5))


def test_every_coin_is_fair_and_the_vector_is_orthogonal_to_the_prediction():
    prediction = np.array([3, -1, 0.5, 0.2, 0, 1, 1, -2], np.float32)
    coins = balanced(np.random.default_rng(0), np.tile(prediction, (20_000, 1)), candidates=64)
    assert set(np.unique(coins)) == {-1, 1}
    assert np.abs(coins.mean(axis=0)).max() < 5 / 20_000**0.5
    overlap, independent = np.mean((coins @ prediction) ** 2), prediction @ prediction
    assert overlap < 0.02 * independent


def test_only_the_direction_of_the_prediction_matters():
    prediction = np.random.default_rng(1).standard_normal((5, D)).astype(np.float32)
    same = [balanced(np.random.default_rng(2), scale * prediction) for scale in (1, 0.01)]
    assert (same[0] == same[1]).all()


def test_balanced_flips_are_coins():
    assert [flips for flips in ("rademacher", "balanced", "gaussian", "zero") if are_coins(flips)] == [
        "rademacher", "balanced",
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    assert set(np.unique(draw("balanced", rng, np.zeros((50, 3), np.float32)))) == {-1, 1}
