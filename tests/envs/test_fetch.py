import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from tasks import assert_begins_alike, assert_draws_without_a_display, assert_outlives_broken_physics

from cfn.envs.fetch import TASKS, Fetch
from cfn.errors import UsageError

DISTANCES = {  # from start to goal
    "reach": (0.075, 0.520, 0.779),
    "push": (0.071, 0.177, 0.283),
    "slide": (0.250, 0.474, 0.702),
    "pick_and_place": (0.173, 0.245, 0.424),
}
MODES = ("easy", "medium", "hard")


@pytest.mark.parametrize("task", TASKS)
def test_it_is_a_gymnasium_environment(task):
    env = Fetch(task)
    check_env(env, skip_render_check=True)
    assert env.observation_space.shape == ((13,) if task == "reach" else (28,))
    assert env.action_space.shape == (4,)
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_fixed_modes_begin_alike_and_as_far_from_the_goal_as_the_paper_has_it(task):
    for mode, distance in zip(MODES, DISTANCES[task], strict=True):
        env = Fetch(task, mode)
        first, _ = env.reset(seed=0)
        start = first[:3] if task == "reach" else first[3:6]
        assert np.linalg.norm(start - first[-3:]) == pytest.approx(distance, abs=1e-3)
        assert_begins_alike(env)


def test_the_default_mode_draws_anew():
    env = Fetch("push")
    firsts = {env.reset(seed=seed)[0].tobytes() for seed in (0, 1, 0)}
    assert len(firsts) == 2
    env.close()


def test_the_arm_reaches_and_that_is_the_end():
    """A simple controller: towards the goal, as fast as the arm goes."""
    env = Fetch("reach", "easy")
    observation, _ = env.reset(seed=0)
    rewards, ended = [], False
    while not ended and len(rewards) < 50:
        towards = np.clip((observation[-3:] - observation[:3]) * 10, -1, 1)
        observation, reward, ended, truncated, info = env.step(np.append(towards, 0).astype(np.float32))
        rewards.append(reward)
    assert (ended, truncated, info["success"]) == (True, False, True)
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]
    env.close()


def test_episodes_end_after_50_steps():
    env = Fetch("push", "hard")
    env.reset(seed=0)
    ends = [env.step(np.zeros(4, np.float32))[2:4] for _ in range(50)]
    assert ends == [(False, False)] * 49 + [(False, True)]
    env.close()


def test_what_is_counted_is_where_the_object_is():
    env = Fetch("push", "easy", bin=0.05)
    observation, info = env.reset(seed=0)
    assert info["state"] == tuple(np.floor(observation[3:6] / 0.05).astype(int))
    assert all(isinstance(part, int) for part in info["state"])
    assert Fetch("reach").reset(seed=0)[1]["state"] == tuple(np.floor(Fetch("reach").reset(seed=0)[0][:3] / 0.025))


def test_a_picture_needs_no_display():
    assert_draws_without_a_display(Fetch("slide", "easy", render_mode="rgb_array"))


def test_broken_physics_end_an_episode_at_its_last_good_observation(caplog, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_outlives_broken_physics(Fetch("push", "easy"), caplog)
    assert list(tmp_path.iterdir()) == [], "MuJoCo keeps no log of its own"


def test_a_mujoco_that_is_too_new_is_refused(monkeypatch):
    import mujoco

    monkeypatch.setattr(mujoco, "__version__", "3.12.1")
    with pytest.raises(UsageError, match=r"pip install 'mujoco<3\.12'"):
        Fetch("push")


def test_actions_are_bounded():
    env = Fetch("push")
    assert isinstance(env.action_space, gym.spaces.Box)
    assert (env.action_space.low == -1).all()
    assert (env.action_space.high == 1).all()
    env.close()
