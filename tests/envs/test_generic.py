import gymnasium as gym
import numpy as np
import pytest

from cfn.envs.generic import make, with_arrays
from cfn.errors import BadValueError, UsageError


def test_an_id_gives_the_environment_as_it_is():
    env = make("CartPole-v1")
    plain = gym.make("CartPole-v1")
    assert (env.reset(seed=3)[0] == plain.reset(seed=3)[0]).all()
    assert "state" not in env.reset(seed=3)[1]
    assert env.spec.max_episode_steps == 500


def test_bins_give_the_true_state():
    env = make("CartPole-v1", bin=0.01)
    observation, info = env.reset(seed=3)
    assert info["state"] == tuple(np.floor(observation.astype(float) / 0.01).astype(int).tolist())
    observation, *_, info = env.step(0)
    assert info["state"] == tuple(np.floor(observation.astype(float) / 0.01).astype(int).tolist())


def test_numbered_observations_become_one_hot_and_are_the_state():
    env = make("FrozenLake-v1", kwargs={"is_slippery": False})
    observation, info = env.reset(seed=0)
    assert observation.tolist() == [1.0] + [0.0] * 15
    assert info["state"] == (0,)
    observation, *_, info = env.step(2)
    assert np.flatnonzero(observation).tolist() == [1]
    assert info["state"] == (1,)
    assert env.observation_space.contains(observation)


def test_structured_observations_are_flattened():
    env = make("Blackjack-v1", max_steps=20)
    assert isinstance(env.observation_space, gym.spaces.Box)
    assert env.observation_space.contains(env.reset(seed=0)[0])


def test_an_environment_that_may_never_end_is_remarked_on(caplog):
    make("Blackjack-v1")
    assert "set env.max_steps" in caplog.text
    caplog.clear()
    make("Blackjack-v1", max_steps=20)
    make("CartPole-v1")
    assert caplog.text == ""


@pytest.mark.parametrize(
    "space",
    [gym.spaces.MultiDiscrete([2, 3]), gym.spaces.MultiBinary(3), gym.spaces.Dict(a=gym.spaces.Discrete(2))],
    ids=str,
)
def test_anybodys_observations_become_arrays(space):
    class Mine(gym.Env):
        observation_space, action_space = space, gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return space.sample(), {}

    env = with_arrays(Mine())
    assert env.observation_space.contains(env.reset()[0])
    assert len(env.observation_space.shape) == 1


def test_observations_of_which_no_array_can_be_made_are_refused():
    class Mine(gym.Env):
        observation_space, action_space = gym.spaces.Text(3), gym.spaces.Discrete(2)

    with pytest.raises(UsageError, match="no array can be made"):
        with_arrays(Mine())


def test_a_step_limit_can_be_set():
    env = make("CartPole-v1", max_steps=3)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "NoSuch-v0"}, "knows no environment 'NoSuch-v0'"),
        ({"id": "CartPol-v1"}, "close to it: CartPole"),
        ({"id": "CartPole-v99"}, "CartPole-v99"),
        ({"id": "nosuch_module:X-v0"}, "nosuch_module"),
        ({"id": "CartPole-v1", "kwargs": {"wheels": 4}}, "wheels"),
        ({"id": "FrozenLake-v1", "kwargs": {"map_name": "99x99"}}, "kwargs: FrozenLake-v1 cannot be made: KeyError"),
    ],
)
def test_what_cannot_be_made_is_told(arguments, message):
    with pytest.raises(BadValueError, match=message):
        make(**arguments)
