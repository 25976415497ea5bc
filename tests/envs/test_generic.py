import gymnasium as gym
import numpy as np
import pytest

from cfn.envs.generic import make
from cfn.errors import BadValueError


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
        ({"id": "Blackjack-v1"}, "no step limit"),
    ],
)
def test_what_cannot_be_made_is_told(arguments, message):
    with pytest.raises(BadValueError, match=message):
        make(**arguments)
