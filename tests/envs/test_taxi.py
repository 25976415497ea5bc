import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from cfn.envs.taxi import DEPOTS, DOWN, INTERACT, LEFT, RIGHT, UP, WALLS, Taxi, _shapes
from cfn.errors import BadValueError


def put(env, taxi, goal, passenger, inside=False):
    env._taxi, env._goal, env._passenger, env._inside, env._steps = taxi, goal, passenger, inside, 0


def test_walls_stop_the_taxi_both_ways_and_only_sideways():
    env = Taxi(5)
    env.reset(seed=0)
    for row in range(5):
        for column in range(4):
            for action, start, end in [(RIGHT, column, column + 1), (LEFT, column + 1, column)]:
                put(env, (row, start), (0, 0), (4, 3))
                env.step(action)
                assert env._taxi == ((row, start) if (row, column) in WALLS[5] else (row, end))
    put(env, (0, 1), (0, 0), (4, 3))
    for action, place in [(UP, (0, 1)), (DOWN, (1, 1)), (RIGHT, (1, 1)), (DOWN, (2, 1)), (RIGHT, (2, 2))]:
        env.step(action)
        assert env._taxi == place


def test_the_walls_are_the_papers():
    assert {(0, 1), (1, 1), (3, 0), (4, 0), (3, 2), (4, 2)} == WALLS[5]
    assert len(WALLS[10]) == 4 + 4 + 4 + 4 + 4 + 4
    assert {(2, 5), (5, 5), (0, 2), (3, 7), (6, 0), (9, 3)} <= WALLS[10]


def test_a_passenger_is_carried_put_down_anywhere_and_delivered_once():
    env = Taxi(5)
    env.reset(seed=0)
    put(env, (2, 2), (0, 4), (2, 2))
    _, reward, terminated, _, info = env.step(INTERACT)
    assert (reward, terminated, info["state"]) == (0.0, False, (2, 2, 0, 4, 2, 2, 1))
    _, _, _, _, info = env.step(RIGHT)
    assert info["state"] == (2, 3, 0, 4, 2, 3, 1)
    _, reward, terminated, _, info = env.step(INTERACT)
    assert (reward, terminated, info["state"]) == (0.0, False, (2, 3, 0, 4, 2, 3, 0)), "anywhere, for nothing"
    env.step(INTERACT)
    for action in (UP, UP, RIGHT):
        _, reward, terminated, _, _ = env.step(action)
        assert (reward, terminated) == (0.0, False), "over the goal, but inside"
    _, reward, terminated, truncated, _ = env.step(INTERACT)
    assert (reward, terminated, truncated) == (1.0, True, False)


@pytest.mark.parametrize(("size", "limit"), [(5, 50), (10, 100)])
def test_episodes_start_as_on_the_papers_depots_and_end_in_time(size, limit):
    env = Taxi(size)
    seen = set()
    for seed in range(400):
        _, info = env.reset(seed=seed)
        taxi, goal, passenger = info["state"][:2], info["state"][2:4], info["state"][4:6]
        assert {taxi, goal, passenger} <= set(DEPOTS[size])
        assert passenger not in (goal, taxi)
        seen.add((taxi, goal, passenger))
    assert len(seen) > 30
    assert any(taxi == goal for taxi, goal, _ in seen), "the taxi may be on the goal"
    put(env, (0, 0), DEPOTS[size][1], DEPOTS[size][2])
    ends = [env.step(UP)[3] for _ in range(limit)]
    assert ends == [False] * (limit - 1) + [True]


@pytest.mark.thorough
@pytest.mark.parametrize(("size", "pixels"), [(5, 84), (10, 84), (5, 34), (10, 64)])
def test_no_two_states_share_an_image(size, pixels):
    env = Taxi(size, pixels)
    cells = [(row, column) for row in range(size) for column in range(size)]
    images = set()
    states = 0
    for goal in DEPOTS[size]:
        for taxi in cells:
            for passenger in cells:
                put(env, taxi, goal, passenger)
                images.add(env._image().tobytes())
                states += 1
            put(env, taxi, goal, taxi, inside=True)
            images.add(env._image().tobytes())
            states += 1
    assert len(images) == states


@pytest.mark.parametrize("cell", range(6, 40))
def test_shapes_leave_the_border_of_a_cell_to_walls_and_frames(cell):
    """Walls cover columns of the border only, and the upper side of a frame stays: no wall can hide a difference."""
    frame, disc, ring = _shapes(cell)
    border = np.ones((cell, cell), bool)
    border[1:-1, 1:-1] = False
    assert (frame == border).all()
    assert not (disc & ring).any()
    assert not ((disc | ring) & border).any()
    assert disc.any()
    assert ring.any()


@pytest.mark.parametrize(
    ("size", "pixels", "walls"),
    [
        # 84 = 2 + 5 * 16 + 2. Walls: right of column 1, rows 0-1; right of columns 0 and 2, rows 3-4.
        (5, 84, {33: (2, 33), 34: (2, 33), 17: (50, 81), 18: (50, 81), 49: (50, 81), 50: (50, 81)}),
        # 34 = 2 + 5 * 6 + 2.
        (5, 34, {13: (2, 13), 14: (2, 13), 7: (20, 31), 8: (20, 31), 19: (20, 31), 20: (20, 31)}),
    ],
)
def test_walls_are_white_lines_of_two_pixels_between_cells(size, pixels, walls):
    env = Taxi(size, pixels)
    expected = np.zeros((pixels, pixels), bool)
    for column, (first, last) in walls.items():
        expected[first : last + 1, column] = True
    assert (env._backgrounds[False] == np.where(expected, 255, 0)).all()
    margin = np.ones((pixels, pixels), bool)
    margin[2:-2, 2:-2] = False
    assert (env._backgrounds[True] == np.where(expected | margin, 255, 0)).all()


@pytest.mark.parametrize(("size", "pixels"), [(5, 84), (10, 84), (10, 64)])
def test_a_wall_is_drawn_wherever_the_taxi_is_stopped_between_two_cells(size, pixels):
    env = Taxi(size, pixels)
    env.reset(seed=0)
    cell = (pixels - 4) // size
    for row in range(size):
        for column in range(size - 1):
            put(env, (row, column), (0, 0), (0, 0))
            env.step(RIGHT)
            stopped = env._taxi == (row, column)
            middle, right = 2 + row * cell + cell // 2, 2 + (column + 1) * cell
            line = env._backgrounds[False][middle, right - 2 : right + 2]
            assert line.tolist() == ([0, 255, 255, 0] if stopped else [0, 0, 0, 0])


def states_seen(size, seed, steps=200_000):
    env = Taxi(size)
    env._image = lambda: None  # the states are counted, not looked at
    states = set()
    info = env.reset(seed=seed)[1]
    for action in np.random.default_rng(seed).integers(5, size=steps).tolist():
        states.add(info["state"])
        *_, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            info = env.reset()[1]
    return len(states)


@pytest.mark.thorough
@pytest.mark.parametrize(("size", "low", "high"), [(5, 840, 900), (10, 6400, 6600)])
def test_a_random_policy_sees_as_many_states_as_in_the_paper(size, low, high):
    """The paper says about 900 and 6,500. Single seeds spread by 39 and 112 (standard deviation), so it is the mean."""
    assert low <= np.mean([states_seen(size, seed) for seed in range(100, 112)]) <= high


def test_the_picture_is_black_and_white_with_a_margin_that_tells():
    env = Taxi(5)
    image, _ = env.reset(seed=0)
    assert image.shape == (84, 84)
    assert set(np.unique(image)) == {0, 255}
    assert not image[0].any()
    walls = env._backgrounds[False] == 255
    assert (image[walls] == 255).all()
    put(env, (2, 2), (0, 4), (2, 2), inside=True)
    assert (env._image()[0] == 255).all()


def test_an_image_too_small_to_tell_states_apart_is_refused():
    with pytest.raises(BadValueError, match="image_size: 63 pixels are too few to draw 10 cells: use at least 64"):
        Taxi(10, image_size=63)


def test_gymnasiums_checker_passes():
    import cfn.envs  # noqa: F401  # registers the id

    check_env(gym.make("cfn/Taxi-v0", size=10).unwrapped, skip_render_check=True)
    assert gym.make("cfn/Taxi-v0", render_mode="rgb_array").unwrapped.reset(seed=0)
    env = Taxi(render_mode="rgb_array")
    image, _ = env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (420, 420, 3)
    assert picture.dtype == np.uint8
    assert (picture == image.repeat(5, axis=0).repeat(5, axis=1)[:, :, None]).all()
