import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfn.nn.running_stats import PublishedStats, RunningStats


@given(st.lists(st.lists(st.floats(-100, 100), min_size=1, max_size=5), min_size=1, max_size=10), st.floats(0.001, 5))
def test_batches_equal_one_pass_over_all(batches, initial):
    moments = RunningStats((1,), initial)
    for batch in batches:
        moments.update(np.array(batch)[:, None])
    values = np.concatenate(batches)
    total = len(values) + 1
    mean = values.sum() / total
    variance = (initial + (values**2).sum()) / total - mean**2
    assert moments.mean[0] == pytest.approx(mean, abs=1e-9)
    assert moments.variance[0] == pytest.approx(variance, abs=1e-6, rel=1e-6)


def test_the_published_recurrence_equals_numbers_computed_by_hand():
    stats = PublishedStats((2,))
    # t = 1: delta (4, 0), mean (4, 0), v = (1 + (16, 0) / 2) / 2 = (9/2, 1/2)
    # t = 2: delta (-3, 6), mean (4 - 3/2, 3), v = (2 v + (9, 36) * 2/3) / 3 = (5, 25/3)
    # t = 3: delta (1/2, 0), mean (5/2 + 1/6, 3), v = (3 v + (1/4, 0) * 3/4) / 4 = (243/64, 25/4)
    for batch in ([[4, 0]], [[1, 6], [3, 3]]):
        stats.update(np.array(batch, float))
    assert stats.mean == pytest.approx([8 / 3, 3])
    assert stats.variance == pytest.approx([243 / 64, 25 / 4])
    assert stats.count == 4


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20))
def test_the_published_mean_gives_the_start_no_weight(values):
    stats = PublishedStats()
    stats.update(np.array(values))
    assert stats.mean == pytest.approx(np.mean(values), abs=1e-9)


@pytest.mark.parametrize("kind", [RunningStats, PublishedStats])
def test_its_state_can_be_saved(kind):
    one, other = kind((2,), 0.5), kind((2,), 0.1)
    one.update(np.array([[1.0, 2.0], [3.0, 4.0]]))
    other.load_state_dict(one.state_dict())
    for moments in (one, other):
        moments.update(np.array([[5.0, 6.0]]))
    assert (one.mean == other.mean).all()
    assert (one.variance == other.variance).all()
