"""The measures, on answers that are known."""

import numpy as np
import pytest

from cfn.exam import measures

COUNTS = np.array([1, 4, 9, 100])


def test_errors_of_the_truth_and_of_a_multiple():
    assert measures.errors(COUNTS**-0.5, COUNTS) == {
        "mse": 0, "slope": pytest.approx(1), "spearman": pytest.approx(1),
    }  # fmt: skip
    assert measures.errors(2 * COUNTS**-0.5 + 1, COUNTS)["slope"] == pytest.approx(2)
    assert measures.errors(np.ones(4), COUNTS)["spearman"] == 0


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_the_exponent_is_that_of_the_power_law(power):
    assert measures.exponent(3 * COUNTS**-power, COUNTS) == pytest.approx(power, abs=1e-9)


def test_a_bonus_of_zero_has_no_exponent():
    assert measures.exponent(np.array([1.0, 0, 0, 0]), COUNTS) == 0


def test_separation_is_the_auc():
    assert measures.separation(np.array([2.0, 3.0]), np.array([1.0, 0.0])) == 1
    assert measures.separation(np.array([1.0]), np.array([1.0, 1.0])) == 0.5
    assert measures.separation(np.array([0.0, 2.0]), np.array([1.0])) == 0.5


def test_the_geometric_mean_needs_positive_values():
    assert measures.geometric_mean(np.array([1.0, 4.0])) == pytest.approx(2)
    assert measures.geometric_mean(np.array([1.0, 0.0])) == 0


def test_settled_ignores_single_outliers_and_needs_evidence():
    ratios = np.array([2.0, 1.5, 1.1] + [1.0] * 20)
    assert measures.settled(ratios) == 2
    ratios[12] = 1.5
    assert measures.settled(ratios) == 2
    assert measures.settled(np.linspace(3, 1.3, 20)) is None
    assert measures.settled(np.array([3.0] * 20 + [1.0] * 2)) is None
