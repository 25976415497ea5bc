import tempfile
from pathlib import Path

import numpy as np
import pytest
from composing import composed
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.seeding import np_random
from resuming import ROBOT, claimed
from tasks import assert_draws_without_a_display, assert_outlives_broken_physics

from cfn import seeding
from cfn.envs import antmaze
from cfn.envs.antmaze import AntMaze
from cfn.errors import UsageError
from cfn.training.play import play


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
        goals.append(env.goal_xy)
    offsets = np.array(goals) - (0, 8)
    assert offsets.min() >= 0
    assert offsets.max() <= 1.5
    assert offsets.mean(axis=0) == pytest.approx([0.75, 0.75], abs=0.1), "the mean of U(0, 1) + U(0, 0.5)"


def drawn(rng):
    """Return D4RL's goal: (0, 8), plus U(0, 1) in each coordinate, plus U(0, 0.5) in each."""
    first, second = rng.uniform(0, 1, 2), rng.uniform(0, 0.5, 2)
    return 0 + first[0] + second[0], 8 + first[1] + second[1]


def test_by_default_the_goal_is_drawn_from_the_seed_of_the_episode(env):
    env.reset(seed=3)
    rng = np_random(3)[0]
    assert tuple(env.goal_xy) == pytest.approx(drawn(rng), abs=1e-12)
    env.reset()
    assert tuple(env.goal_xy) == pytest.approx(drawn(rng), abs=1e-12), "the next draw of the same generator"


def test_the_goal_of_a_run_is_drawn_from_the_seed_of_the_run(env):
    fixed = AntMaze(goal="run", run_seed=5)
    for seed in (0, 1, None):
        observation, _ = fixed.reset(seed=seed)
        assert tuple(fixed.goal_xy) == pytest.approx(drawn(np.random.default_rng(5)), abs=1e-12)
        if seed is not None:
            assert (observation == env.reset(seed=seed)[0]).all(), "the ant's start does not depend on `goal`"
    x, y = fixed.goal_xy
    target = fixed._env.model.site("target").pos
    assert target[:2] == pytest.approx((x - 4, y - 4)), "the goal that is rendered"
    place(fixed, x - 0.3, y)
    assert fixed.step(np.zeros(8, np.float32))[1:3] == (1, True)
    fixed.close()


def goals_of_a_run(folder, monkeypatch, *overrides):
    """Train and evaluate in two environments each, then play; return the goals of all episodes by command."""
    goals = []
    reset_task = AntMaze._reset_task

    def recorded(env, seed):
        observation = reset_task(env, seed)
        goals.append(tuple(env.goal_xy))
        return observation

    monkeypatch.setattr(AntMaze, "_reset_task", recorded)
    small = ("env=antmaze", "bonus=none", "env.max_steps=5", *ROBOT, "num_envs=2", "steps=20", "eval.every=20")
    run, training = claimed(folder, *small, "eval.episodes=2", "checkpoint.every=20", *overrides)
    training.run(run)
    trained = len(goals)
    assert trained >= 2 * 2 + 2, "two training episodes and one evaluation episode in each environment"
    play(folder, 2, False, [])
    assert len(goals) >= trained + 2
    return goals[:trained], goals[trained:]


def test_training_evaluation_and_play_share_the_goal_of_a_run(tmp_path, monkeypatch):
    trained, played = goals_of_a_run(tmp_path / "0", monkeypatch)
    (goal,) = set(trained)
    assert set(played) == {goal}
    assert goal == pytest.approx(drawn(np.random.default_rng(seeding.integer(0, "env"))), abs=1e-12)
    (other,) = set(goals_of_a_run(tmp_path / "1", monkeypatch, "seed=1")[0])
    assert other != goal, "another seed, another goal"


def test_the_goals_of_episodes_differ(tmp_path, monkeypatch):
    trained, _ = goals_of_a_run(tmp_path, monkeypatch, "env.goal=episode")
    assert len(set(trained)) >= 2 * 2 + 2


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("env=antmaze", "env.goal=nosuch"), r"^env\.goal=nosuch: should be 'run' or 'episode'$"),
        (
            ("env=antmaze", "env.run_seed=3"),
            r"^env\.run_seed is not a key: the keys of env=antmaze are bin, goal, max_steps",
        ),
        (("env=taxi5", "env.goal=run"), r"^env\.goal is not a key: the keys of env=taxi5 are "),
    ],
)
def test_a_wrong_goal_is_refused_with_its_key(overrides, message):
    with pytest.raises(UsageError, match=message):
        composed(*overrides)


def place(env, x, y):
    env._env.ant_env.data.qpos[:2] = np.array([x, y]) - 4


def test_within_half_a_metre_of_the_goal_is_the_end(env):
    env.reset(seed=0)
    x, y = env.goal_xy
    place(env, x - 0.8, y)
    assert env.step(np.zeros(8, np.float32))[1:4] == (0, False, False)
    place(env, x - 0.3, y)
    observation, reward, terminated, truncated, info = env.step(np.zeros(8, np.float32))
    assert np.linalg.norm(observation[:2] - env.goal_xy) < 0.5
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


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
@pytest.mark.parametrize("known", [False, True], ids=["temporary folder unknown", "temporary folder known"])
def test_construction_leaves_no_file_in_the_temporary_folder(tmp_path, monkeypatch, known, render_mode):
    """Neither before nor after the first `tempfile.gettempdir()`, which stores the folder for the process."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    if known:
        tempfile.gettempdir()
    (tmp_path / "other.txt").touch()
    before = sorted(tmp_path.rglob("*"))
    env = AntMaze(render_mode=render_mode)
    assert sorted(tmp_path.rglob("*")) == before
    env.reset(seed=0)
    env.close()
    assert sorted(tmp_path.rglob("*")) == before
    assert Path(tempfile.gettempdir()) == tmp_path, "the temporary folder is the user's again"


def test_failed_construction_leaves_no_file_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(antmaze, "TORQUE", "not a number")  # MuJoCo refuses the maze after it is written
    with pytest.raises(ValueError, match="XML Error"):
        AntMaze()
    assert list(tmp_path.iterdir()) == []
    assert tempfile.tempdir == str(tmp_path)


def test_a_picture_needs_no_display():
    assert_draws_without_a_display(AntMaze(render_mode="rgb_array"))


def test_broken_physics_end_an_episode_at_its_last_good_observation(env, caplog):
    assert_outlives_broken_physics(env, caplog)
