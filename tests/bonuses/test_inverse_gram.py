"""Forms of an inverse Gram matrix: equal to the direct inverse, also after very many updates."""

import copy

import numpy as np
import pytest

from cfn.bonuses.inverse_gram import InverseGram


def unit_rows(rng, count, size, scale=1.0):
    rows = rng.standard_normal((count, size)).astype(np.float32) + np.float32(scale)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def direct(rows, ridge, asked):
    gram = ridge * np.eye(rows.shape[1]) + rows.astype(np.float64).T @ rows
    return np.einsum("ij,ij->i", asked, np.linalg.solve(gram, asked.T.astype(np.float64)).T)


@pytest.mark.parametrize("count", [0, 1, 30, 64, 65, 500])
def test_it_equals_the_direct_inverse(count):
    rng = np.random.default_rng(0)
    rows, asked = unit_rows(rng, count, 40), unit_rows(rng, 20, 40)
    inverse = InverseGram(40, 0.01)
    inverse.add(rows)
    assert inverse.forms(asked) == pytest.approx(direct(rows, 0.01, asked), rel=1e-3)


def visited_often(updates, seed=1):
    """A few similar vectors with very different counts; most directions stay unvisited."""
    rng = np.random.default_rng(seed)
    size, ridge = 64, 1e-3
    distinct = unit_rows(rng, 20, size)
    shares = 2.0 ** -np.arange(20)
    visits = rng.choice(20, size=updates, p=shares / shares.sum())
    inverse = InverseGram(size, ridge)
    inverse.add(distinct[visits])
    counts = np.bincount(visits, minlength=20)
    gram = ridge * np.eye(size) + (distinct.astype(np.float64).T * counts) @ distinct
    seen = counts > 0
    expected = np.einsum("ij,ij->i", distinct, np.linalg.solve(gram, distinct.T.astype(np.float64)).T)
    return inverse.forms(distinct)[seen], expected[seen], counts[seen]


def test_rounding_errors_do_not_grow():
    """Single-precision Sherman-Morrison would be off by 1e-4 here, ten times the smallest form."""
    forms, expected, counts = visited_often(20_000)
    assert expected.min() < 2e-4
    assert forms == pytest.approx(expected, rel=0.02)
    assert forms == pytest.approx(1 / counts, rel=0.05), "the vectors are independent, so they are counted"


@pytest.mark.slow
def test_it_is_stable_over_a_million_updates():
    forms, expected, _ = visited_often(1_000_000)
    assert forms == pytest.approx(expected, rel=0.02)


def test_asking_changes_nothing_and_adding_counts_at_once():
    inverse = InverseGram(8, 1e-3)
    one = np.eye(8, dtype=np.float32)[:1]
    for n in range(1, 5):
        inverse.add(one)
        assert inverse.forms(one)[0] == pytest.approx(1 / (n + 1e-3), rel=1e-3)
        assert inverse.forms(one) == inverse.forms(one)


@pytest.mark.parametrize("count", [10, 64, 100])
def test_its_state_can_be_saved(count):
    rng = np.random.default_rng(2)
    one, other = InverseGram(16, 0.01), InverseGram(16, 0.01)
    one.add(unit_rows(rng, count, 16))
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    more, asked = unit_rows(rng, 90, 16), unit_rows(rng, 5, 16)
    for inverse in (one, other):
        inverse.add(more)
    assert (one.forms(asked) == other.forms(asked)).all()


def test_another_size_is_refused():
    with pytest.raises(ValueError, match=r"bonus\.features"):
        InverseGram(16, 0.01).load_state_dict(InverseGram(8, 0.01).state_dict())


@pytest.mark.parametrize("ridge", [0.001, 0.3])
@pytest.mark.parametrize("count", [0, 10, 100])
def test_it_is_resumed_exactly_before_and_after_the_first_block(ridge, count):
    rng = np.random.default_rng(0)
    rows, asked = unit_rows(rng, count, 40), unit_rows(rng, 20, 40)
    straight, resumed = InverseGram(40, ridge), InverseGram(40, ridge)
    straight.add(rows)
    resumed.load_state_dict(copy.deepcopy(straight.state_dict()))
    assert (resumed.forms(asked) == straight.forms(asked)).all()
    assert (resumed.add(asked) == straight.add(asked)).all()
