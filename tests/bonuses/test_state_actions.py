import gymnasium as gym
import numpy as np
import pytest

from cfn.bonuses.inverse_dynamics import Actions
from cfn.bonuses.state_actions import ActionOutputs
from cfn.bonuses.visits import Visits
from cfn.errors import BadInputError, BadValueError


def test_actions_are_numbered_from_0_whatever_the_first_one_is():
    outputs = ActionOutputs(True, gym.spaces.Discrete(3, start=-1), size=2)
    assert outputs.taken(Visits(actions=np.array([-1, 0, 1])), 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize("action", [-2, 2])
def test_actions_outside_of_the_space_are_refused(action):
    space = gym.spaces.Discrete(3, start=-1)
    with pytest.raises(BadInputError, match=r"are not all between -1 and 1"):
        ActionOutputs(True, space, size=2).taken(Visits(actions=np.array([action])), 1)
    with pytest.raises(BadInputError, match=r"are not all between -1 and 1"):
        Actions("icm", space).numbers(np.array([action]))


def test_pairs_need_discrete_actions():
    with pytest.raises(BadValueError, match="state_action needs discrete actions"):
        ActionOutputs(True, gym.spaces.Box(-1, 1, (2,)), size=2)


def test_a_bonus_of_states_needs_no_actions():
    assert ActionOutputs(False, None, size=2).taken(None, 3).tolist() == [0, 0, 0]
