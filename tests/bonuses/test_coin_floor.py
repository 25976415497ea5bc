import copy

import numpy as np
import pytest

from cfn.bonuses.coin_floor import CoinTally


def tallied(distribution="coins", steps=3000, distinct=30):
    """A tally of two environments, and the plain list of flips of each state."""
    rng = np.random.default_rng(0)
    tally, plain = CoinTally(20), {}
    for _ in range(steps):
        states = [tuple(s) for s in (rng.integers(distinct, size=(2, 1)) ** 2 // distinct).tolist()]
        flips = rng.integers(2, size=(2, 20)) * 2.0 - 1 if distribution == "coins" else rng.normal(size=(2, 20))
        tally.add(states, flips)
        for state, flip in zip(states, flips, strict=True):
            plain.setdefault(state, []).append(flip)
    return tally, plain


def counts_of(plain):
    return np.array([len(flips) for flips in plain.values()])


@pytest.mark.parametrize("distribution", ["coins", "normal"])
def test_the_floor_is_what_the_coins_leave(distribution):
    tally, plain = tallied(distribution)
    states, counts = list(plain), counts_of(plain)
    expected = np.array([np.sqrt(np.mean(np.mean(plain[state], axis=0) ** 2)) for state in states])
    assert tally.floor(states, counts) == pytest.approx(expected)
    assert tally.floor(states[::-1], counts[::-1]) == pytest.approx(expected[::-1]), "in any order"
    error = np.mean((expected - counts**-0.5) ** 2)
    assert tally.report(states, counts) == {"bonus/floor_mse": pytest.approx(error)}


def test_nothing_is_reported_if_the_coins_of_a_state_are_unknown():
    tally, plain = tallied()
    assert tally.report([*plain, (999,)], np.append(counts_of(plain), 1)) == {}
    assert CoinTally(20).report([(0,)], np.ones(1)) == {}


def test_it_grows():
    tally, states = CoinTally(2), [(n, -n) for n in range(2000)]
    for state in states:
        tally.add([state], np.array([[1.0, -1.0]]))
    assert tally.floor(states, np.ones(2000)).tolist() == [1.0] * 2000


@pytest.mark.parametrize("steps", [0, 3000])
def test_its_state_can_be_saved(steps):
    one, plain = tallied(steps=steps)
    other = CoinTally(20)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    states = [*plain, (1000,), (1001,)]
    for tally in (one, other):
        tally.add(states, np.ones((len(states), 20)))
    counts = np.append(counts_of(plain), [0, 0]) + 1
    assert one.report(states, counts) == other.report(states, counts) != {}


@pytest.mark.parametrize(("states", "sums"), [((3, 1), (2, 20)), ((3, 1), (3, 19)), ((3, 1), (3,))], ids=str)
def test_a_state_that_does_not_fit_is_refused(states, sums):
    with pytest.raises(ValueError, match="the sums of coins have the wrong shape"):
        CoinTally(20).load_state_dict({"states": np.zeros(states, int), "sums": np.zeros(sums)})
