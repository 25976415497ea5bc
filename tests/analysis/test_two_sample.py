"""Two samples are compared as plain loops, scipy and cases worked out by hand say."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from cfn.analysis import two_sample
from cfn.analysis.two_sample import Samples, difference, improvement, rank_test, samples

FEW_VALUES = st.lists(st.integers(0, 4).map(float), min_size=1, max_size=7)
"""Samples with many ties."""


def in_plain_loops(a, b):
    """P(A > B), with ties as one half."""
    wins = 0.0
    for x in a:
        for y in b:
            wins += 1.0 if x > y else 0.5 if x == y else 0.0
    return wins / (len(a) * len(b))


def test_the_probability_of_improvement_by_hand():
    # Of the six pairs, 3 > 1, 3 > 2 and 2 > 1 are wins, 2 = 2 is half a win, 0 < 1 and 0 < 2 are losses.
    assert improvement([samples([0, 2, 3], [1, 2])]).centre == pytest.approx(3.5 / 6)


@settings(max_examples=50)
@given(st.lists(st.tuples(FEW_VALUES, FEW_VALUES), min_size=1, max_size=3))
def test_the_probability_of_improvement_is_that_of_plain_loops_averaged_over_tasks(tasks):
    result = improvement([samples(a, b) for a, b in tasks])
    assert result.centre == pytest.approx(np.mean([in_plain_loops(a, b) for a, b in tasks]))
    mirrored = improvement([samples(b, a) for a, b in tasks])
    assert result.centre + mirrored.centre == pytest.approx(1)


def test_the_difference_by_hand_with_tasks_of_equal_weight():
    one, other = samples([1, 3], [0, 0, 3]), samples([10], [4, 6])
    assert difference([one]).centre == 1
    assert difference([one, other]).centre == pytest.approx((1 + 5) / 2)


def test_intervals_are_those_of_plain_resampling():
    """The same resamples, drawn run by run: the mean and the loops of each."""
    task = samples([0.1, 0.5, 0.5, 0.9], [0.2, 0.5, 0.4])
    rng, runs = np.random.default_rng(0), (4, 3)
    draws = [rng.integers(number, size=(two_sample.RESAMPLES, number)) for number in runs]
    resampled = [(task.a[i], task.b[j]) for i, j in zip(*draws, strict=True)]
    bounds = np.percentile([in_plain_loops(a, b) for a, b in resampled], (2.5, 97.5))
    assert improvement([task])[1:] == pytest.approx(bounds)
    bounds = np.percentile([a.mean() - b.mean() for a, b in resampled], (2.5, 97.5))
    assert difference([task])[1:] == pytest.approx(bounds)


def test_the_sides_and_tasks_are_resampled_independently():
    """With the same draws for both sides, the difference of two equal samples would have no spread."""
    scores = np.random.default_rng(0).normal(size=20)
    task = samples(scores, scores)
    one, nine = difference([task]), difference([task] * 9)
    assert one.low < -0.2 < 0.2 < one.high
    ratio = (nine.high - nine.low) / (one.high - one.low)
    assert ratio == pytest.approx(1 / 3, rel=0.15), "nine independent tasks have a third of the spread"


@pytest.mark.parametrize(("seeds", "expected"), [(5, (0.85, 0.92)), (20, (0.92, 0.97))])
def test_intervals_cover_the_truth_about_as_often_as_they_say(seeds, expected):
    rng, number = np.random.default_rng(1), 600
    tasks = [samples(rng.normal(1, 1, seeds), rng.normal(0, 2, seeds)) for _ in range(number)]
    results = [difference([task]) for task in tasks]
    covered = sum(result.low <= 1 <= result.high for result in results) / number
    assert expected[0] <= covered <= expected[1]
    truth = 0.5 * math.erfc(-1 / math.sqrt(5) / math.sqrt(2))  # P(N(1, 1) > N(0, 4)) = Phi(1 / sqrt(1 + 4))
    results = [improvement([task]) for task in tasks]
    covered = sum(result.low <= truth <= result.high for result in results) / number
    assert 0.85 <= covered <= 0.97


def test_the_interval_over_tasks_covers_the_truth():
    rng, number = np.random.default_rng(2), 300
    results = [
        improvement([samples(rng.normal(size=10), rng.normal(size=10)) for _ in range(6)]) for _ in range(number)
    ]
    assert 0.9 <= sum(result.low <= 0.5 <= result.high for result in results) / number <= 0.98


def test_a_single_run_leaves_the_intervals_unknown():
    for task in (samples([1], [0, 2]), samples([0, 2], [1])):
        for statistic in (difference, improvement):
            result = statistic([task, samples([0, 1], [0, 1])])
            assert math.isfinite(result.centre)
            assert math.isnan(result.low)
            assert math.isnan(result.high)


def test_rounding_errors_are_ties():
    task = samples([0.1 + 0.2] * 3, [0.3] * 7)
    assert improvement([task]) == (0.5, 0.5, 0.5)
    assert difference([task]) == (0, 0, 0), "the means of 3 and of 7 equal numbers differ in the last digit"
    assert difference([samples([0.1, 0.3], [0.2, 0.2])]).centre == 0
    assert rank_test([task]).p == 1
    assert samples([1e-20, 1 + 1e-6], []).a.tolist() == [1e-20, 1 + 1e-6], "small and slightly different scores stay"


@given(st.permutations(range(11)), st.integers(1, 10))
def test_without_ties_the_test_is_scipys_exact_one(values, number):
    a, b = np.array(values[:number], float), np.array(values[number:], float)
    expected = mannwhitneyu(a, b, method="exact")
    assert rank_test([samples(a, b)]) == pytest.approx((expected.statistic, expected.pvalue))


def test_u_and_p_with_ties_counted_by_hand():
    """Scores 1, 1 against 0, 0, 1. Each run of A wins twice and ties once: U = 2.5 + 2.5 = 5 of 6 pairs.

    Of the 10 ways to choose A's two scores among 0, 0, 1, 1, 1, three have 1, 1 (U = 5), six have 0, 1 (U = 0.5 + 2)
    and one has 0, 0 (U = 0). The mean of U is 3: 5 and 0 are at least 2 away from it, so p = (3 + 1) / 10.
    """
    u, p = rank_test([samples([1, 1], [0, 0, 1])])
    assert u == 5
    assert p == pytest.approx(0.4)


def test_three_seeds_against_three_are_never_significant():
    """Every sparse task of three seeds would look significant with the normal approximation: p = 0.047."""
    assert rank_test([samples([1, 1, 1], [0, 0, 0])]) == pytest.approx((9, 2 / 20))
    assert mannwhitneyu([1, 1, 1], [0, 0, 0]).pvalue < 0.05


def by_enumeration(tasks):
    """U and p over all assignments of the scores of each task to the sides, one by one."""

    def u(a, b):
        return in_plain_loops(a, b) * len(a) * len(b)

    ways = []
    for a, b in tasks:
        pooled, chosen = [*a, *b], itertools.combinations(range(len(a) + len(b)), len(a))
        ways.append([u([pooled[i] for i in c], [x for i, x in enumerate(pooled) if i not in c]) for c in chosen])
    middle = sum(len(a) * len(b) for a, b in tasks) / 2
    observed = sum(u(a, b) for a, b in tasks)
    distances = [abs(sum(one) - middle) for one in itertools.product(*ways)]
    return observed, sum(d >= abs(observed - middle) - 1e-9 for d in distances) / len(distances)


SMALL = st.lists(st.integers(0, 2).map(float), min_size=1, max_size=3)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=2))
def test_the_test_over_tasks_with_ties_is_that_of_all_assignments(tasks):
    assert rank_test([samples(a, b) for a, b in tasks]) == pytest.approx(by_enumeration(tasks))


@pytest.mark.parametrize("values", [50, 10_000_000])
def test_large_samples_are_tested_as_scipy_does(values):
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, values, 80) + values / 10, rng.integers(0, values, 70)
    expected = mannwhitneyu(a, b, method="asymptotic")
    assert rank_test([samples(a, b)]) == pytest.approx((expected.statistic, expected.pvalue))
    assert rank_test([samples(np.zeros(80), np.zeros(70))]) == (2800, 1), "nothing but ties"


def test_the_exact_test_and_the_approximation_agree_where_they_meet(monkeypatch):
    rng = np.random.default_rng(4)
    tasks = [samples(rng.normal(0.3, 1, 20), rng.normal(0, 1, 30)) for _ in range(4)]
    exact = rank_test(tasks)
    monkeypatch.setattr(two_sample, "MAX_EXACT_RUNS", 1)
    assert rank_test(tasks) == pytest.approx(exact, rel=0.02)
    assert 0.001 < exact.p < 0.2


def test_of_equal_settings_five_of_a_hundred_tests_are_significant():
    rng = np.random.default_rng(5)
    p = [rank_test([Samples(rng.normal(size=8), rng.normal(size=6)) for _ in range(3)]).p for _ in range(400)]
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.08
