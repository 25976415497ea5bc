import csv
import io
import math

import numpy as np
import pytest

from cfn.analysis.grouping import Group
from cfn.analysis.tally import MAX_METHODS, as_csv, as_markdown, balance, tally
from cfn.analysis.two_sample import Interval


class Given:
    """A score whose averages are the runs themselves."""

    averages = staticmethod(list)


def tallied(**methods):
    """The tally of methods with scores by task: `cfn=[[1, 2], [3, 4]]`."""
    groups = [
        Group(f"task{number}", name, tuple(map(float, runs)), {})
        for name, tasks in methods.items()
        for number, runs in enumerate(tasks)
    ]
    return tally(groups, dict.fromkeys((one.task for one in groups), Given))


def test_wins_ties_and_losses_by_hand():
    nan = math.nan
    differences = [
        Interval(2, 1, 3),  # a win
        Interval(-2, -3, -1),  # a loss
        Interval(1, -1, 3),  # ahead, but a tie
        Interval(-1, -2, 0),  # 0 is in the interval
        Interval(1, nan, nan),  # a single seed
        Interval(0, 0, 0),
    ]
    assert balance(differences) == (6, 3, 2, 1, 4, 1)


def test_each_pair_over_the_tasks_that_both_have():
    low, high, noisy = [0, 0.1, 0.2], [1, 1.1, 1.2], [0, 0.6, 1.2]
    pairs = tallied(cfn=[high, high, noisy], rnd=[low, high, low], none=[low, []])
    assert [(pair.a, pair.b) for pair in pairs] == [("cfn", "rnd"), ("cfn", "none"), ("rnd", "none")]
    first, second, third = pairs
    assert first.balance == (3, 2, 0, 1, 2, 0), "a win, two equal samples, and ahead with an interval around 0"
    # 1, 1/2, and of the nine pairs of the last task: 0 ties with 0 (1/2), 0.6 and 1.2 win six.
    assert first.improvement.centre == pytest.approx((1 + 0.5 + 6.5 / 9) / 3)
    assert (second.balance.tasks, second.balance.wins) == (1, 1), "the second task of `none` has no scores"
    assert third.balance == (1, 0, 0, 0, 1, 0)


def test_one_method_has_no_tally_and_neither_has_a_crowd():
    assert tallied(cfn=[[1, 2], [1, 2]]) == []
    assert len(tallied(**{f"m{i}": [[i]] for i in range(MAX_METHODS)})) == MAX_METHODS * (MAX_METHODS - 1) / 2
    assert tallied(**{f"m{i}": [[i]] for i in range(MAX_METHODS + 1)}) == []


def test_as_text():
    pairs = tallied(cfn=[[1, 2], [3, 4]], rnd=[[0, 0], [1, 1]], none=[[5], [6]])
    text = as_markdown(pairs)
    lines = text.splitlines()
    assert lines[2] == "| cfn | rnd | 2 of 2 | 0 of 2 | 2 | 0 | 0 | 1 (1 to 1) |"
    assert lines[3] == "| cfn | none | 0 of 2 | 2 of 2 | 0 | 2 | 0 | 0 |", "a single seed has no interval"
    assert "With fewer than 10 seeds, bootstrap intervals are too narrow" in text
    assert "too narrow" not in as_markdown(tallied(cfn=[range(10)], rnd=[range(10)]))
    first, second, _ = csv.DictReader(io.StringIO(as_csv(pairs)))
    assert first == {
        "a": "cfn", "b": "rnd", "tasks": "2", "a_ahead": "2", "b_ahead": "0", "wins": "2", "ties": "0", "losses": "0",
        "improvement": "1", "improvement_low": "1", "improvement_high": "1",
    }  # fmt: skip
    assert (second["improvement"], second["improvement_low"]) == ("0", "")


@pytest.mark.thorough
def test_better_methods_win_more_often_over_a_hundred_tasks():
    rng = np.random.default_rng(0)
    pairs = tallied(**{f"m{i}": rng.normal(i / 4, 1, (100, 10)) for i in range(6)})
    assert [pair.balance.tasks for pair in pairs] == [100] * 15
    assert pairs[4].balance.losses > 50, "m0 against m5"
