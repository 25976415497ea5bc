"""The paper's mathematics, as mathematics."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfn.bonuses.theory import linear_inverse_count, variance_of_inverse_count

# Distributions of mean 0 and variance 1: values and probabilities.
COINS = ([-1.0, 1.0], [0.5, 0.5])
THREE = ([-(2**0.5), 0.0, 2**0.5], [0.25, 0.5, 0.25])
SKEWED = ([-0.5, 2.0], [0.8, 0.2])
DISTRIBUTIONS = [COINS, THREE, SKEWED]


def moments_of_the_squared_mean(distribution, n):
    """E[z_n^2] and Var[z_n^2], by going through every outcome."""
    values, probabilities = distribution
    first = second = 0.0
    for outcome in product(range(len(values)), repeat=n):
        p = np.prod([probabilities[i] for i in outcome])
        z = np.mean([values[i] for i in outcome])
        first += p * z**2
        second += p * z**4
    return first, second - first**2


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=["coins", "three", "skewed"])
@pytest.mark.parametrize("n", range(1, 8))
def test_any_whitened_distribution_counts(distribution, n):
    values, probabilities = distribution
    fourth = sum(p * v**4 for v, p in zip(values, probabilities, strict=True))
    mean, variance = moments_of_the_squared_mean(distribution, n)
    assert mean == pytest.approx(1 / n)
    assert variance == pytest.approx(variance_of_inverse_count(n, fourth), abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_gaussians_count_too(n):
    rng = np.random.default_rng(0)
    squares = rng.normal(size=(200_000, n)).mean(axis=1) ** 2
    assert squares.mean() == pytest.approx(1 / n, rel=0.02)
    assert squares.var() == pytest.approx(variance_of_inverse_count(n, fourth_moment=3), rel=0.05)


@given(st.integers(1, 1000), st.floats(1.001, 50))
def test_coins_count_best(n, fourth_moment):
    assert variance_of_inverse_count(n) < variance_of_inverse_count(n, fourth_moment)
    assert variance_of_inverse_count(1) == 0, "of a single visit, coins are certain"


@pytest.mark.parametrize("d", [1, 4, 20])
def test_more_coins_lower_the_variance(d):
    rng = np.random.default_rng(d)
    coins = rng.integers(2, size=(20_000, 6, d)) * 2.0 - 1
    estimates = (coins.mean(axis=1) ** 2).mean(axis=1)
    assert estimates.mean() == pytest.approx(1 / 6, rel=0.05)
    assert estimates.var() == pytest.approx(variance_of_inverse_count(6, d=d), rel=0.08)
    assert variance_of_inverse_count(6, d=d) == pytest.approx(variance_of_inverse_count(6) / d)


def test_one_hot_states_give_tabular_counts():
    counts = [1, 2, 5, 9]
    states = np.repeat(np.eye(4), counts, axis=0)
    assert [linear_inverse_count(states, row) for row in np.eye(4)] == pytest.approx([1 / n for n in counts])


def test_a_linear_network_counts_singular_vectors():
    """The least-squares fit to coins, many times over, has the expected norm that the appendix derives."""
    rng = np.random.default_rng(0)
    states, asked = rng.normal(size=(30, 5)), rng.normal(size=5)
    coins = rng.integers(2, size=(30, 40_000)) * 2.0 - 1
    weights, *_ = np.linalg.lstsq(states, coins, rcond=None)
    assert np.mean((asked @ weights) ** 2) == pytest.approx(linear_inverse_count(states, asked), rel=0.03)
    plain = asked @ np.linalg.inv(states.T @ states) @ asked
    assert linear_inverse_count(states, asked) == pytest.approx(plain)
