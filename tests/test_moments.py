import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfn.moments import RunningMoments


@given(st.lists(st.lists(st.floats(-100, 100), min_size=1, max_size=5), min_size=1, max_size=10), st.floats(0.001, 5))
def test_batches_equal_one_pass_over_all(batches, initial):
    moments = RunningMoments((1,), initial)
    for batch in batches:
        moments.update(np.array(batch)[:, None])
    values = np.concatenate(batches)
    total = len(values) + 1
    mean = values.sum() / total
    variance = (initial + (values**2).sum()) / total - mean**2
    assert moments.mean[0] == pytest.approx(mean, abs=1e-9)
    assert moments.variance[0] == pytest.approx(variance, abs=1e-6, rel=1e-6)


def test_its_state_can_be_saved():
    one, other = RunningMoments((2,), 0.5), RunningMoments((2,), 0.1)
    one.update(np.array([[1.0, 2.0], [3.0, 4.0]]))
    other.load_state_dict(one.state_dict())
    for moments in (one, other):
        moments.update(np.array([[5.0, 6.0]]))
    assert (one.mean == other.mean).all()
    assert (one.variance == other.variance).all()
