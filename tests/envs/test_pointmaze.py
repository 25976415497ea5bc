from collections import deque
from pathlib import Path

import numpy as np
import pytest
from composing import composed
from gymnasium.utils.env_checker import check_env
from metrics import rows
from resuming import ROBOT, VECTOR_CFN, broken_off, claimed, resumed
from tasks import assert_begins_alike, assert_draws_without_a_display, assert_outlives_broken_physics

from cfn.envs.pointmaze import MAZES, PointMaze
from cfn.errors import UsageError


@pytest.fixture
def made():
    """Make environments, and close them."""
    envs = []

    def make(*arguments, **keys):
        envs.append(PointMaze(*arguments, **keys))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


def distances(grid, start):
    """The number of steps from a cell to every other one, along the corridors."""
    found, queue = {start: 0}, deque([start])
    while queue:
        row, column = queue.popleft()
        for cell in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            if grid[cell[0]][cell[1]] != 1 and cell not in found:
                found[cell] = found[row, column] + 1
                queue.append(cell)
    return found


def middle(env, cell):
    """The position of the middle of a cell."""
    return env._env.maze.cell_rowcol_to_xy(np.array(cell))


def test_it_is_a_gymnasium_environment(made):
    env = made()
    assert env._maze == MAZES["Medium"]
    check_env(env, skip_render_check=True)
    assert env.observation_space.shape == (6,)
    assert env.action_space.shape == (2,)


@pytest.mark.parametrize("name", MAZES)
def test_start_and_goal_are_as_far_apart_as_the_maze_is_long(made, name):
    env = made(name)
    grid = env._env.maze.maze_map
    cells = [(row, column) for row, line in enumerate(grid) for column, cell in enumerate(line) if cell != 1]
    longest = max(max(distances(grid, cell).values()) for cell in cells)
    maze = MAZES[name]
    assert distances(grid, maze.start)[maze.goal] == longest
    observation, _ = env.reset(seed=0)
    assert observation.tolist() == pytest.approx([*middle(env, maze.start), 0, 0, *middle(env, maze.goal)], abs=1e-6)
    assert_begins_alike(env)


def driven(env):
    """Drive from cell to cell to the goal; return the observations, the rewards and the last outcome."""
    grid, maze = env._env.maze.maze_map, env._maze
    to_goal = distances(grid, maze.goal)
    observation, _ = env.reset(seed=0)
    cell, rewards, terminated, truncated, info = maze.start, [], False, False, {}
    while not (terminated or truncated):
        x, v = observation[:2], observation[2:4]
        if cell != maze.goal and np.linalg.norm(middle(env, cell) - x) < 0.3:
            row, column = cell
            around = ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1))
            cell = min(around, key=lambda other: to_goal.get(other, np.inf))
        force = np.clip(8 * (middle(env, cell) - x) - 1.5 * v, -1, 1).astype(np.float32)
        observation, reward, terminated, truncated, info = env.step(force)
        rewards.append(reward)
    return observation, rewards, terminated, truncated, info


@pytest.mark.parametrize("name", MAZES)
def test_a_simple_controller_reaches_the_goal_and_that_is_the_end(made, name):
    env = made(name)
    observation, rewards, terminated, truncated, info = driven(env)
    assert (terminated, truncated, info["success"]) == (True, False, True)
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]
    assert np.linalg.norm(observation[:2] - observation[4:]) <= 0.45
    assert len(rewards) > env.max_steps / 3, "the way is long"


def test_random_actions_do_not_reach_a_distant_goal(made):
    env = made("Large")
    env.action_space.seed(0)
    returns = []
    for seed in range(5):
        env.reset(seed=seed)
        ended = False
        returns.append(0.0)
        while not ended:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            returns[-1] += reward
            ended = terminated or truncated
    assert returns == [0.0] * 5


@pytest.mark.parametrize(("name", "steps"), [("UMaze", 75), ("Open", 75), ("Medium", 150), ("Large", 200)])
def test_an_episode_has_the_packages_time(made, name, steps):
    env = made(name)
    assert env.max_steps == steps
    env.reset(seed=0)
    ends = [env.step(np.zeros(2, np.float32))[2:4] for _ in range(steps)]
    assert ends == [(False, False)] * (steps - 1) + [(False, True)]
    assert made(name, repeat=1).max_steps == 4 * steps
    assert made(name, max_steps=3).max_steps == 3


def test_an_action_is_repeated(made):
    four, one = made(repeat=4), made(repeat=1)
    four.reset(seed=0)
    one.reset(seed=0)
    action = np.array([0.7, -0.2], np.float32)
    for _ in range(5):
        last, *_ = four.step(action)
        for _ in range(4):
            single, *_ = one.step(action)
        assert (last == single).all()


def test_no_step_is_simulated_beyond_the_goal(made):
    """Otherwise a ball could roll through it within one action."""
    env = made("UMaze", repeat=50, max_steps=10)
    env.reset(seed=0)
    x, y = middle(env, MAZES["UMaze"].goal)
    env._env.point_env.set_state(np.array([x + 0.8, y]), np.array([-5.0, 0.0]))
    observation, reward, terminated, _, _ = env.step(np.array([-1.0, 0.0], np.float32))
    assert (reward, terminated) == (1, True)
    assert 0.4 < observation[0] - x <= 0.45, "the first simulated position within the goal's radius"


def test_random_starts_and_goals_are_the_packages(made):
    env = made(mode="random")
    observations = np.array([env.reset(seed=seed)[0] for seed in range(60)])
    assert len(np.unique(observations[:, :2].round(3), axis=0)) > 50
    assert len(np.unique(observations[:, 4:].round(3), axis=0)) > 50
    assert (np.linalg.norm(observations[:, :2] - observations[:, 4:], axis=1) > 0.1).all()
    assert (env.reset(seed=7)[0] == observations[7]).all()
    env._env.reset(seed=7)
    assert env._env.goal.tolist() == pytest.approx(observations[7, 4:].tolist()), "of gymnasium-robotics itself"


def test_what_is_counted_is_x_and_y(made):
    env = made("UMaze", bin=0.5)
    assert env.reset(seed=0)[1]["state"] == (-2, -2)
    env._env.point_env.set_state(np.array([0.7, -1.1]), np.array([1.0, 0.0]))
    observation, *_, info = env.step(np.zeros(2, np.float32))
    assert info["state"] == tuple(np.floor(observation[:2] / 0.5).astype(int))
    assert info["state"] == (1, -3)


def test_construction_leaves_no_file_in_the_temporary_folder(tmp_path, monkeypatch, made):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made().reset(seed=0)
    assert list(Path(tmp_path).iterdir()) == []


def test_it_brings_sac():
    config, _ = composed("env=pointmaze", "env.map=Large")
    assert config.agent.name == "sac"
    assert config.env.keys["map"] == "Large"
    with pytest.raises(UsageError, match=r"^env\.map=Huge: should be 'UMaze', 'Open', 'Medium' or 'Large'"):
        composed("env=pointmaze", "env.map=Huge")


@pytest.mark.thorough
def test_a_run_resumes_bit_for_bit(tmp_path, monkeypatch):
    overrides = (
        "env=pointmaze", "env.max_steps=20", *ROBOT, *VECTOR_CFN, "num_envs=2", "steps=140", "eval.every=50",
        "checkpoint.every=50",
    )  # fmt: skip
    whole, training = claimed(tmp_path / "whole", *overrides)
    training.run(whole)
    broken = broken_off(tmp_path / "broken", 112, monkeypatch, *overrides)
    assert resumed(broken, monkeypatch) == rows(whole.folder)


def test_a_picture_needs_no_display():
    assert_draws_without_a_display(PointMaze(render_mode="rgb_array"))


def test_broken_physics_end_an_episode_at_its_last_good_observation(made, caplog):
    assert_outlives_broken_physics(made(), caplog)
