import tempfile
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from tasks import assert_draws_without_a_display, assert_outlives_broken_physics

from cfn.envs.antmaze import AntMaze


@pytest.fixture
def env():
    env = AntMaze()
    yield env
    env.close()


def test_it_is_a_gymnasium_environment(env):
    check_env(env, skip_render_check=True)
    assert env.observation_space.shape == (29,)
    assert env.action_space.shape == (8,)


def test_the_ant_is_d4rls(env):
    model = env._env.model
    assert (model.actuator_gear[:, 0] * model.actuator_ctrlrange[:, 1] == 30).all(), "torque at action 1"
    assert (model.actuator_gear[:, 0] * model.actuator_ctrlrange[:, 0] == -30).all()
    assert model.opt.timestep == 0.02
    assert env._env.ant_env.dt == pytest.approx(0.1)
    assert model.geom_solref[0] == pytest.approx((0.02, 1))
    assert model.geom_solimp[0][:3] == pytest.approx((0.8, 0.8, 0.01))


def test_it_begins_near_the_origin_with_noise_in_its_joints(env):
    firsts = np.array([env.reset(seed=seed)[0] for seed in range(40)])
    positions, velocities = firsts[:, :15] - firsts[:, :15].mean(axis=0), firsts[:, 15:]
    assert np.abs(firsts[:, :2]).max() <= 0.1 + 1e-6
    assert np.abs(positions[:, 7:]).max() <= 0.2
    assert positions[:, 7:].std() == pytest.approx(0.1 / np.sqrt(3), rel=0.1)
    assert velocities.std() == pytest.approx(0.1, rel=0.1)
    assert (env.reset(seed=3)[0] == firsts[3]).all(), "and its seed brings a beginning back"


def test_the_goal_is_near_0_8_as_in_d4rl(env):
    goals = []
    for seed in range(200):
        env.reset(seed=seed)
        goals.append(env.goal)
    offsets = np.array(goals) - (0, 8)
    assert offsets.min() >= 0
    assert offsets.max() <= 1.5
    assert offsets.mean(axis=0) == pytest.approx([0.75, 0.75], abs=0.1), "the mean of U(0, 1) + U(0, 0.5)"


def place(env, x, y):
    env._env.ant_env.data.qpos[:2] = np.array([x, y]) - 4


def test_within_half_a_metre_of_the_goal_is_the_end(env):
    env.reset(seed=0)
    x, y = env.goal
    place(env, x - 0.8, y)
    assert env.step(np.zeros(8, np.float32))[1:4] == (0, False, False)
    place(env, x - 0.3, y)
    observation, reward, terminated, truncated, info = env.step(np.zeros(8, np.float32))
    assert np.linalg.norm(observation[:2] - env.goal) < 0.5
    assert (reward, terminated, truncated, info["success"]) == (1, True, False, True)


def test_between_start_and_goal_is_a_wall(env):
    """The U: the straight way from (0, 0) to (0, 8) is closed, the one by (8, 0) and (8, 8) is open."""
    blocks = [env._env.model.geom(i) for i in range(env._env.model.ngeom)]
    walls = [geom for geom in blocks if geom.name.startswith("block")]

    def free(x, y):
        inside = [(np.abs(np.array([x, y]) - 4 - wall.pos[:2]) < wall.size[:2]).all() for wall in walls]
        return not any(inside)

    assert [free(0, y) for y in (0, 4, 8)] == [True, False, True]
    assert all(free(x, y) for x, y in [(4, 0), (8, 0), (8, 4), (8, 8), (4, 8)])


def test_an_ant_on_its_back_goes_on(env):
    env.reset(seed=0)
    env._env.ant_env.data.qpos[2:7] = (0.3, 0, 1, 0, 0)
    assert env.step(np.zeros(8, np.float32))[1:4] == (0, False, False)


def test_episodes_end_after_1000_steps(env):
    env.reset(seed=0)
    ends = [env.step(np.zeros(8, np.float32))[2:4] for _ in range(1000)]
    assert ends == [(False, False)] * 999 + [(False, True)]


def test_what_is_counted_is_x_and_y(env):
    env.reset(seed=0)
    place(env, 3.1, 0.5)
    observation, *_, info = env.step(np.zeros(8, np.float32))
    assert info["state"] == tuple(np.floor(observation[:2] / 0.2).astype(int))
    assert info["state"] == (15, 2)


def test_it_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    AntMaze().close()
    assert list(tmp_path.iterdir()) == []
    assert Path(tempfile.gettempdir()) == tmp_path


def test_a_picture_needs_no_display():
    assert_draws_without_a_display(AntMaze(render_mode="rgb_array"))


def test_broken_physics_end_an_episode_at_its_last_good_observation(env, caplog):
    assert_outlives_broken_physics(env, caplog)
