import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfn.bonuses.counts import CountBonus
from cfn.bonuses.visits import Visits
from cfn.errors import UsageError

STATES = st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=1, max_size=4), max_size=20)


@given(STATES)
def test_it_is_scale_over_the_root_of_the_count(batches):
    bonus = CountBonus(scale=0.5)
    seen = []
    for states in batches:
        rewards = bonus.observe(np.zeros((len(states), 2)), Visits(states))
        seen += states
        assert rewards == pytest.approx([0.5 * seen.count(state) ** -0.5 for state in states])


def test_asking_changes_nothing_and_an_unseen_state_is_as_new_as_can_be():
    bonus = CountBonus()
    bonus.observe(np.zeros((4, 2)), Visits([(1, 1)] * 4))
    for _ in range(2):
        assert bonus.novelty(np.zeros((2, 2)), [(1, 1), (2, 2)]).tolist() == [0.5, 1.0]


def test_its_state_can_be_saved():
    one, other = CountBonus(), CountBonus()
    one.observe(np.zeros((3, 2)), Visits([(1, 2), (1, 2), (0, 0)]))
    other.load_state_dict(one.state_dict())
    states = [(1, 2), (0, 0), (5, 5)]
    assert (one.observe(np.zeros((3, 2)), Visits(states)) == other.observe(np.zeros((3, 2)), Visits(states))).all()


def test_without_true_states_it_says_what_to_do():
    with pytest.raises(UsageError, match=r"env\.bin"):
        CountBonus().novelty(np.zeros((1, 2)))
