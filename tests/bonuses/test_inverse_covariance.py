import copy

import numpy as np
import pytest

from cfn.bonuses.inverse_covariance import InverseCovariance


def test_one_hot_features_count():
    """1 / (n + ridge), and 5.4545 for a unit vector at 45 degrees after one visit."""
    covariance, seen = InverseCovariance(1, 3, 0.1), np.array([[1.0, 0, 0]])
    assert [covariance.visit(seen)[0] for _ in range(4)] == pytest.approx([10, 1 / 1.1, 1 / 2.1, 1 / 3.1])
    covariance.clear(np.array([True]))
    covariance.visit(seen)
    assert covariance.visit(np.array([[0.5**0.5, 0.5**0.5, 0]]))[0] == pytest.approx(5.4545, abs=1e-4)


def test_it_is_the_inverse_of_each_episodes_own_covariance():
    covariance, rng = InverseCovariance(2, 4, 0.3), np.random.default_rng(0)
    seen = [[], []]
    for step in range(20):
        begins = np.array([step % 6 == 0, step % 9 == 0])
        covariance.clear(begins)
        features = rng.standard_normal((2, 4))
        expected = []
        for row in range(2):
            seen[row] = [] if begins[row] else seen[row]
            matrix = 0.3 * np.eye(4) + sum((np.outer(h, h) for h in seen[row]), np.zeros((4, 4)))
            expected.append(features[row] @ np.linalg.solve(matrix, features[row]))
            seen[row].append(features[row])
        assert covariance.visit(features) == pytest.approx(np.array(expected))


def test_its_state_can_be_saved():
    one, other = InverseCovariance(2, 3, 0.1), InverseCovariance(2, 3, 0.1)
    one.visit(np.ones((2, 3)))
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    assert (one.visit(np.ones((2, 3))) == other.visit(np.ones((2, 3)))).all()
    with pytest.raises(ValueError, match="another shape"):
        other.load_state_dict(InverseCovariance(1, 3, 0.1).state_dict())


def test_begins_may_be_numbers_as_in_other_loops():
    covariance, fresh = InverseCovariance(3, 2, 0.5), InverseCovariance(1, 2, 0.5)
    features = np.ones((3, 2))
    once = covariance.visit(features)[0]
    covariance.clear(np.array([0.0, 0.0, 1.0]))
    assert (covariance.visit(features) < once).tolist() == [True, True, False]
    assert covariance.state_dict()["inverse"].shape == (3, 2, 2)
    assert fresh.visit(features[:1])[0] == once
