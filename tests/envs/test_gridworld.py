import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import cfn.envs  # noqa: F401  # registers the id
from cfn.envs.gridworld import DOWN, LEFT, RIGHT, UP, Gridworld
from cfn.errors import BadValueError


def test_it_is_the_papers_by_default():
    env = Gridworld()
    image, info = env.reset(seed=0)
    assert (env.size, env.max_steps, env.action_space.n) == (42, 150, 4)
    assert image.shape == (84, 84)
    assert image.dtype == np.uint8
    assert info["state"] == (0, 0)
    assert np.argwhere(image).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]], "the 2x2 block of (0, 0)"
    assert set(np.unique(image)) == {0, 255}


def test_shortest_path_to_the_goal_takes_82_steps():
    env = Gridworld()
    env.reset(seed=0)
    for step in range(1, 83):
        image, reward, terminated, truncated, info = env.step(RIGHT if step <= 41 else UP)
        assert (reward, terminated) == ((1.0, True) if step == 82 else (0.0, False))
        assert not truncated
    assert info["state"] == (41, 41)
    assert np.argwhere(image).min(axis=0).tolist() == [82, 82], "the goal is in the far corner"


def test_it_is_truncated_after_150_steps():
    env = Gridworld()
    env.reset(seed=0)
    ends = [env.step(LEFT)[2:4] for _ in range(150)]
    assert ends == [(False, False)] * 149 + [(False, True)]


@pytest.mark.parametrize(("noise", "steps"), [(0.0, 150), (0.1, 167), (0.2, 188), (0.3, 214), (0.4, 250), (0.5, 300)])
def test_noise_lengthens_the_episode(noise, steps):
    assert Gridworld(action_noise=noise).max_steps == steps
    assert Gridworld(action_noise=noise, max_steps=300).max_steps == round(300 / (1 - noise))


def test_noise_replaces_the_action_by_any_of_the_four():
    env = Gridworld(action_noise=0.4, max_steps=10**9)
    moves = {(1, 0): 0, (-1, 0): 0, (0, 1): 0, (0, -1): 0}
    for seed in range(200):
        env.reset(seed=seed)
        env._x = env._y = 20
        for _ in range(10):
            x, y = env._x, env._y
            env.step(RIGHT)
            moves[env._x - x, env._y - y] += 1
    expected = {(1, 0): 0.7, (-1, 0): 0.1, (0, 1): 0.1, (0, -1): 0.1}
    for move, count in moves.items():
        p = expected[move]
        assert abs(count / 2000 - p) < 4 * (p * (1 - p) / 2000) ** 0.5, (move, count)


@settings(max_examples=50, deadline=None)
@given(
    size=st.integers(2, 9),
    pixels=st.integers(1, 4),
    actions=st.lists(st.integers(0, 3), min_size=1, max_size=60),
)
def test_it_equals_a_plain_model(size, pixels, actions):
    env = Gridworld(size=size, image_size=size * pixels, max_steps=10**6)
    env.reset(seed=0)
    x = y = 0
    for action in actions:
        image, reward, terminated, _, info = env.step(action)
        if action == LEFT and x > 0:
            x -= 1
        if action == RIGHT and x < size - 1:
            x += 1
        if action == UP and y < size - 1:
            y += 1
        if action == DOWN and y > 0:
            y -= 1
        cells = np.zeros((size, size), np.uint8)
        cells[y, x] = 255
        assert (image == np.kron(cells, np.ones((pixels, pixels), np.uint8))).all()
        assert info["state"] == (x, y)
        assert terminated == (reward == 1.0) == ((x, y) == (size - 1, size - 1))
        if terminated:
            break


def test_observations_are_the_callers_to_keep():
    env = Gridworld(size=4, image_size=4)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    env.step(RIGHT)
    assert (first == kept).all()


def test_gymnasiums_checker_passes():
    check_env(gym.make("cfn/Gridworld-v0", size=7, image_size=14).unwrapped, skip_render_check=True)


def test_rendering_shows_agent_and_goal():
    env = gym.make("cfn/Gridworld-v0", size=7, image_size=14, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (420, 420, 3)
    assert picture[-1, 0].tolist() == [255, 255, 255]
    assert picture[0, -1].tolist() == [90, 200, 120]


def test_an_image_that_cannot_be_cut_into_cells_is_refused():
    with pytest.raises(BadValueError, match="multiple of 5, such as 45"):
        Gridworld(size=5, image_size=42)


def test_an_action_that_is_none_is_refused():
    env = Gridworld()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="not 4"):
        env.step(4)
