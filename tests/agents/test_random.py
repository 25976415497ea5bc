import gymnasium as gym
import numpy as np
import pytest

from cfn.agents.random import RandomAgent
from cfn.errors import UsageError

SPACES = [
    gym.spaces.Discrete(4),
    gym.spaces.Discrete(3, start=5),
    gym.spaces.Box(-2, 3, (3,), np.float32),
    gym.spaces.MultiDiscrete([2, 3]),
    gym.spaces.MultiBinary(4),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_actions_fit_the_space_and_the_seed_decides(space):
    def actions(seed):
        agent = RandomAgent(space, seed)
        return np.stack([agent.act(np.zeros((3, 2))) for _ in range(20)])

    assert all(space.contains(action) for batch in actions(0) for action in batch)
    assert (actions(0) == actions(0)).all()
    assert (actions(0) != actions(1)).any()


def test_actions_are_uniform():
    agent = RandomAgent(gym.spaces.Discrete(4), 0)
    counts = np.bincount(agent.act(np.zeros((4000, 2))), minlength=4)
    assert ((counts - 1000) ** 2 / 1000).sum() < 16.3, "chi-square, 3 degrees of freedom, p = 0.001"


def test_being_evaluated_does_not_shift_what_is_explored():
    one, other = (RandomAgent(gym.spaces.Discrete(9), 0) for _ in range(2))
    for _ in range(10):
        other.act(np.zeros((5, 2)), explore=False)
        assert (one.act(np.zeros((5, 2))) == other.act(np.zeros((5, 2)))).all()


@pytest.mark.parametrize(
    "space",
    [gym.spaces.Dict(a=gym.spaces.Discrete(2)), gym.spaces.Tuple((gym.spaces.Discrete(2),)), gym.spaces.Text(3)],
    ids=str,
)
def test_actions_that_are_not_arrays_are_refused_by_name(space):
    with pytest.raises(UsageError) as error:
        RandomAgent(space)
    assert str(error.value).startswith(f"actions of {space} are not supported")


def test_its_state_can_be_saved():
    one, other = (RandomAgent(gym.spaces.Discrete(9), seed) for seed in (0, 1))
    one.act(np.zeros((7, 2)))
    other.load_state_dict(one.state_dict())
    for explore in (True, False):
        assert (one.act(np.zeros((9, 2)), explore) == other.act(np.zeros((9, 2)), explore)).all()
