import numpy as np
import pytest

from cfn.bonuses.visits import Visits
from cfn.errors import UsageError


def test_a_bonus_gets_the_fields_that_it_asks_for():
    actions, begins = np.array([1]), np.array([True])
    assert Visits(actions=actions, begins=begins).require("mine", "begins", "actions") == [begins, actions]


def test_missing_fields_are_named():
    with pytest.raises(UsageError, match=r"^bonus=mine needs `next_observations` and `begins` of each visit: observe"):
        Visits(actions=np.array([1])).require("mine", "actions", "next_observations", "begins")
