"""The statistics are held against scipy's, against cases worked out by hand, and against what they mean."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import trim_mean

from cfn.analysis.stats import (
    GRID_POINTS,
    MEANING,
    MIN_RUNS_TO_TRIM,
    RESAMPLES,
    average,
    bootstrap,
    common_grid,
    estimate,
    estimate_over_tasks,
    interquartile_mean,
    iqm_with_interval,
    mean_with_error,
    meaning,
    on_grid,
)
from cfn.runs.reading import Series

NUMBERS = st.floats(-1e6, 1e6)


def series(*pairs):
    steps, values = np.array(pairs, float).T
    return Series(steps, values)


@given(arrays(float, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=NUMBERS))
def test_the_interquartile_mean_is_scipys_trimmed_mean(values):
    assert interquartile_mean(values.T) == pytest.approx(trim_mean(values, 0.25, axis=0), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([5], 5), ([0, 1], 0.5), ([0, 0, 9], 3), ([0, 1, 2, 100], 1.5), ([9, 1, 2, 3, 4, 5, -50, 100], 3.5)],
)
def test_by_hand(values, expected):
    assert interquartile_mean(values) == pytest.approx(expected)


def test_mean_and_standard_error_by_hand():
    result = mean_with_error([np.array([[0.0, 1], [1, 1]])])
    assert result.centre.tolist() == [0.5, 1]
    assert (result.high - result.centre).tolist() == [0.5, 0], "the standard error of 0 and 1 is 1/2"
    alone = mean_with_error([np.array([[3.0]])])
    assert alone.centre.tolist() == [3]
    assert np.isnan([alone.low, alone.high]).all(), "of one run there is no error"


def test_the_standard_error_over_tasks_is_that_within_them():
    assert estimate_over_tasks([[0] * 5, [1] * 5], "mean")[:3] == (0.5, 0.5, 0.5), "no task has any spread"
    few, many = [0.0, 2], [0.0, 2, 0, 2]
    by_hand = np.sqrt((2 / 6) ** 2 * np.var(few, ddof=1) / 2 + (4 / 6) ** 2 * np.var(many, ddof=1) / 4)
    result = estimate_over_tasks([few, many], "mean")
    assert result.high[0] - result.centre[0] == pytest.approx(by_hand)


@pytest.mark.parametrize("stat", ["iqm", "mean"])
def test_a_task_with_one_run_leaves_the_interval_unknown(stat):
    result = estimate_over_tasks([[0, 1], [1]], stat)
    assert np.isfinite(result.centre).all()
    assert np.isnan([result.low, result.high]).all()


def test_of_few_runs_nothing_is_trimmed_and_that_is_said():
    assert meaning("iqm", 3).startswith("mean (too few seeds to trim)")
    assert meaning("iqm", MIN_RUNS_TO_TRIM) == MEANING["iqm"]
    assert interquartile_mean([0, 0, 9]) == 3
    assert interquartile_mean([0, 0, 0, 9]) == 0
    assert meaning("mean", 3) == MEANING["mean"]


def test_the_same_runs_give_the_same_interval_and_columns_do_not_depend_on_each_other():
    values = np.random.default_rng(1).normal(size=(7, 5))
    low, high = bootstrap([values])
    again = bootstrap([values])
    assert np.array_equal(low, again[0])
    assert np.array_equal(high, again[1])
    assert bootstrap([values[:, 2:3]])[0].tolist() == [low[2]]
    assert not np.array_equal(low, bootstrap([values], seed=1)[0])


def test_the_interval_is_that_of_plain_resampling():
    values = np.random.default_rng(3).exponential(size=13)
    bounds = [float(bound[0]) for bound in bootstrap([values[:, None]])]
    drawn = np.random.default_rng(0).multinomial(13, [1 / 13] * 13, RESAMPLES)
    plain = [trim_mean(np.repeat(values, times), 0.25) for times in drawn]
    assert bounds == pytest.approx(np.percentile(plain, (2.5, 97.5))), "the same resamples, one by one"
    other = trim_mean(np.random.default_rng(99).choice(values, (13, 20_000)), 0.25, axis=0)
    assert bounds == pytest.approx(np.percentile(other, (2.5, 97.5)), rel=0.15), "and others"


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(5)
    low, high = bootstrap([rng.normal(size=(20, 400))])  # 400 experiments of 20 runs, whose true centre is 0
    covered = np.mean((low <= 0) & (high >= 0))
    assert 0.85 <= covered <= 0.98, "a percentile bootstrap of 20 runs falls a little short of 95%"


def test_strata_are_resampled_each_by_itself():
    tasks = [np.zeros((4, 1)), np.ones((4, 1))]  # no spread within a task
    low, high = bootstrap(tasks)
    assert (low.tolist(), high.tolist()) == ([0.5], [0.5])
    mixed_low, mixed_high = bootstrap([np.concatenate(tasks)])
    assert mixed_low[0] < 0.5 < mixed_high[0]
    assert estimate_over_tasks([[0, 0, 0], [1, 1, 1]], "iqm").low.tolist() == [0.5]


@settings(max_examples=30)
@given(arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 3)), elements=NUMBERS))
def test_the_interval_lies_within_the_runs_and_around_the_centre(values):
    result = iqm_with_interval([values])
    assert np.isnan(result.low).all() == (len(values) == 1)
    if len(values) == 1:
        return
    slack = 1e-6 * (1 + np.abs(values).max())
    assert (result.low >= values.min(axis=0) - slack).all()
    assert (result.high <= values.max(axis=0) + slack).all()
    assert (result.low <= result.high + slack).all()


@pytest.mark.parametrize("stat", ["iqm", "mean"])
def test_each_step_is_about_the_runs_that_have_it(stat):
    values = np.array([[0, 1, np.nan, np.nan], [2, 3, 5, np.nan]])
    result = estimate(values, stat)
    assert result.centre == pytest.approx([1, 2, 5, np.nan], nan_ok=True)
    assert result.runs.tolist() == [2, 2, 1, 0]
    assert np.isnan([result.low[2], result.high[2]]).all(), "one run has no interval"
    assert result.low[0] < 1 < result.high[0]


def test_runs_are_compared_on_a_common_grid():
    one, other = series((100, 0), (200, 1), (300, 1)), series((150, 4), (250, 8))
    grid = common_grid([one, other])
    assert grid.tolist() == [100, 150, 200, 250, 300]
    expected = [[0, 0.5, 1, 1, 1], [np.nan, 4, 6, 8, np.nan]]
    assert on_grid([one, other], grid) == pytest.approx(np.array(expected), nan_ok=True)
    long = Series(np.arange(1, 5001.0), np.arange(5000.0))
    assert len(common_grid([long])) == GRID_POINTS
    assert on_grid([long], common_grid([long]))[0, [0, -1]].tolist() == [0, 4999]
    assert common_grid([]).tolist() == []
    assert on_grid([], np.arange(3.0)).shape == (0, 3)


def test_the_average_is_the_area_by_the_steps():
    assert average(series((0, 0), (100, 1))) == 0.5
    assert average(series((0, 0), (50, 0), (100, 0), (1000, 2))) == pytest.approx(0.9), "late steps count as much"
    assert average(series((7, 3))) == 3
