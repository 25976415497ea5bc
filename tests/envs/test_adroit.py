import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from tasks import assert_begins_alike, assert_draws_without_a_display, assert_outlives_broken_physics

from cfn.envs.adroit import TASKS, Adroit

SIZES = {"door": (39, 28), "hammer": (46, 26), "pen": (45, 24), "relocate": (39, 30)}  # observation, action
MODES = ("easy", "medium", "hard")


@pytest.mark.parametrize("task", TASKS)
def test_it_is_a_gymnasium_environment(task):
    env = Adroit(task, "default")
    check_env(env, skip_render_check=True)
    assert (env.observation_space.shape, env.action_space.shape) == tuple((size,) for size in SIZES[task])
    assert (env.action_space.low == -1).all()
    assert (env.action_space.high == 1).all()
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_fixed_modes_begin_alike(task):
    for mode in MODES:
        assert_begins_alike(Adroit(task, mode))


@pytest.mark.parametrize("task", TASKS)
def test_the_default_mode_draws_anew_and_the_modes_differ(task):
    env = Adroit(task, "default")
    firsts = [env.reset(seed=seed)[0].tobytes() for seed in (0, 1, 0)]
    firsts += [Adroit(task, mode).reset(seed=0)[0].tobytes() for mode in MODES]
    assert len(set(firsts)) == 5
    env.close()


@pytest.mark.parametrize(
    ("mode", "frame"),
    [("easy", (-0.25, 0.25, 0.35)), ("medium", (-0.25, 0.3, 0.35)), ("hard", (-0.25, 0.35, 0.35))],
)
def test_where_the_door_is(mode, frame):
    env = Adroit("door", mode)
    env.reset(seed=0)
    assert env._env.data.body("frame").xpos == pytest.approx(frame)
    env.close()


@pytest.mark.parametrize(("mode", "height"), [("easy", 0.1), ("medium", 0.175), ("hard", 0.25)])
def test_where_the_nails_board_is(mode, height):
    env = Adroit("hammer", mode)
    first, _ = env.reset(seed=0)
    assert env._env.data.body("nail_board").xpos[2] == pytest.approx(height)
    assert first[-4:-1] == pytest.approx(env._env.data.site("S_target").xpos, abs=1e-6), "the observation knows"
    env.close()


@pytest.mark.parametrize(
    ("mode", "ball", "target"),
    [
        ("easy", (0, 0.075), (0, 0, 0.15)),
        ("medium", (-0.15, -0.15), (0, 0, 0.25)),
        ("hard", (-0.15, -0.15), (0.2, 0.2, 0.35)),
    ],
)
def test_where_ball_and_target_are(mode, ball, target):
    env = Adroit("relocate", mode)
    first, _ = env.reset(seed=0)
    place = env._env.data.body("Object").xpos
    assert place[:2] == pytest.approx(ball)
    assert first[-3:] == pytest.approx(place - target, abs=1e-6)
    env.close()


@pytest.mark.parametrize(("mode", "angles"), [("easy", (0, 1, 0)), ("medium", (-1, 0, 0)), ("hard", (-1, -1, 0))])
def test_how_the_pen_is_to_lie(mode, angles):
    """Euler angles about x, then y: the pen's axis is the world's z turned by them."""
    env = Adroit("pen", mode)
    first, _ = env.reset(seed=0)
    x, y, _ = angles
    rotation = np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]]) @ np.array(
        [[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]]
    )
    wanted = first[36:39]
    assert np.linalg.norm(wanted) == pytest.approx(1, abs=1e-4)
    assert abs(wanted @ rotation[:, 2]) == pytest.approx(1, abs=1e-4)
    env.close()


def test_a_dropped_pen_ends_the_episode():
    env = Adroit("pen", "hard")
    env.reset(seed=0)
    env._env.model.body("Object").pos[2] -= 0.22  # on the table
    _, reward, terminated, truncated, info = env.step(np.zeros(24, np.float32))
    assert env._env.data.body("Object").xpos[2] < 0.075
    assert (reward, terminated, truncated, info["success"]) == (0, True, False, False)
    env.close()


@pytest.mark.parametrize("joint", ["OBJTx", "OBJTy"])
def test_a_ball_off_the_table_truncates_the_episode(joint):
    env = Adroit("relocate", "easy")
    env.reset(seed=0)
    env._env.data.qpos[env._env.model.joint(joint).qposadr[0]] -= 0.6
    _, reward, terminated, truncated, _ = env.step(np.zeros(30, np.float32))
    assert (reward, terminated, truncated) == (0, False, True)
    env.close()


def test_an_open_door_is_success_and_the_end():
    env = Adroit("door", "easy")
    env.reset(seed=0)
    env._env.data.qpos[env._env.door_hinge_addrs] = 1.5
    _, reward, terminated, truncated, info = env.step(np.zeros(28, np.float32))
    assert (reward, terminated, truncated, info["success"]) == (1, True, False, True)
    env.close()


def test_episodes_end_after_200_steps():
    env = Adroit("hammer")
    env.reset(seed=0)
    ends = [env.step(np.zeros(26, np.float32))[2:4] for _ in range(200)]
    assert ends == [(False, False)] * 199 + [(False, True)]
    env.close()


@pytest.mark.parametrize(
    ("task", "where"),
    [
        ("pen", lambda data: data.body("Object").xpos),
        ("hammer", lambda data: data.body("Object").xpos),
        ("relocate", lambda data: data.body("Object").xpos),
        ("door", lambda data: data.site("S_handle").xpos),
    ],
)
def test_what_is_counted_is_where_the_object_is(task, where):
    env = Adroit(task, bin=0.05)
    info = env.reset(seed=0)[1]
    assert info["state"] == tuple(np.floor(where(env._env.data) / 0.05).astype(int))
    assert all(isinstance(part, int) for part in info["state"])
    env.close()


def test_a_picture_needs_no_display():
    assert_draws_without_a_display(Adroit("pen", render_mode="rgb_array"))


def test_broken_physics_end_an_episode_at_its_last_good_observation(caplog):
    assert_outlives_broken_physics(Adroit("relocate"), caplog)
