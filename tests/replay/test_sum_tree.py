import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cfn.replay.sum_tree import SumTree


@settings(deadline=None)
@given(
    st.integers(1, 40).flatmap(
        lambda capacity: st.tuples(
            st.just(capacity),
            st.lists(st.lists(st.tuples(st.integers(0, capacity - 1), st.floats(0, 1e3)), min_size=1), max_size=10),
        )
    )
)
def test_it_is_a_list_of_priorities_and_their_sum(case):
    capacity, writes = case
    tree, plain = SumTree(capacity), np.zeros(capacity)
    for write in writes:
        indices, priorities = (np.array(column) for column in zip(*write, strict=True))
        tree[indices] = priorities.astype(float)
        for index, priority in write:
            plain[index] = priority
    assert (tree[np.arange(capacity)] == plain).all()
    assert tree._tree[1] == pytest.approx(plain.sum())


@pytest.mark.parametrize("capacity", [1, 2, 7, 64, 1000])
def test_sampling_is_exactly_proportional(capacity):
    rng = np.random.default_rng(capacity)
    priorities = rng.random(capacity) ** 4
    priorities[rng.random(capacity) < 0.3] = 0
    priorities[0] = 0.5
    tree = SumTree(capacity)
    tree[np.arange(capacity)] = priorities
    draws = 200_000
    counts = np.bincount(tree.sample(draws, rng), minlength=capacity)
    assert (counts[priorities == 0] == 0).all()
    expected = draws * priorities / priorities.sum()
    often = expected >= 5
    observed = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    if wanted[-1] == 0:
        observed, wanted = observed[:-1], wanted[:-1]
    if len(wanted) > 1:
        assert stats.chisquare(observed, wanted).pvalue > 1e-3


def test_the_plain_search_finds_the_same_entries():
    rng = np.random.default_rng(0)
    priorities = rng.integers(0, 4, 300).astype(float)
    tree = SumTree(300)
    tree[np.arange(300)] = priorities

    class Fixed:
        def random(self, count):
            return np.linspace(0, 1, count, endpoint=False)

    found = tree.sample(5000, Fixed())
    plain = np.searchsorted(
        np.cumsum(priorities), np.linspace(0, 1, 5000, endpoint=False) * priorities.sum(), side="right"
    )
    assert (found == plain).all()


def test_many_changes_leave_no_error_behind():
    rng = np.random.default_rng(0)
    tree = SumTree(64)
    for _ in range(5000):
        tree[rng.integers(64, size=16)] = rng.random(16) * 10.0 ** rng.integers(-12, 6, 16)
    tree[np.arange(64)] = np.full(64, 0.125)
    assert tree._tree[1] == 8.0


def test_its_state_can_be_saved():
    one, other = SumTree(10), SumTree(10)
    one[np.arange(10)] = np.arange(10.0)
    other.load_state_dict(one.state_dict(10))
    assert other._tree[1] == 45
    draws = [tree.sample(50, np.random.default_rng(1)).tolist() for tree in (one, other)]
    assert draws[0] == draws[1]


@pytest.mark.parametrize("capacity", [1, 2, 5, 8, 100])
@pytest.mark.parametrize("size", [0, 1, 2, 5, 100])
def test_a_state_of_any_size_takes_the_place_of_what_was_there(capacity, size):
    size = min(size, capacity)
    one, other = SumTree(capacity), SumTree(capacity)
    one[np.arange(size)] = np.arange(1.0, size + 1)
    other[np.arange(capacity)] = np.full(capacity, 7.0)
    other.load_state_dict(one.state_dict(size))
    assert (other._tree[1:] == one._tree[1:]).all()


@pytest.mark.parametrize("entry", [-1, 5, 8, 500, 2**40])
def test_what_is_not_there_cannot_be_written(entry):
    """Five entries have a tree of eight leaves, and memory goes on behind it."""
    tree = SumTree(5)
    tree[np.arange(5)] = np.ones(5)
    before = tree._tree.copy()
    with pytest.raises(IndexError):
        tree[np.array([0, entry])] = np.array([7.0, 7.0])
    with pytest.raises(IndexError):
        tree[np.array([0, 1])] = np.array([7.0])
    assert (tree._tree == before).all()
