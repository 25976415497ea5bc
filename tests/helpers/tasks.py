"""Checks that every MuJoCo task must pass."""

import contextlib

import numpy as np
import pytest

from cfn.errors import UsageError


@contextlib.contextmanager
def drawing():
    """Where pictures of MuJoCo's are drawn; a machine that has nothing to draw them with cannot test that."""
    try:
        yield
    except UsageError as error:
        if "MUJOCO_GL" not in str(error):
            raise
        pytest.skip(f"neither EGL nor OSMesa is on this machine: {error}")


def assert_draws_without_a_display(env):
    env.reset(seed=0)
    with drawing():
        picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.std() > 10
    env.close()


def assert_outlives_broken_physics(env, caplog):
    good, before = env.reset(seed=0)
    env._env.data.qpos[0] = np.nan
    observation, reward, terminated, truncated, info = env.step(np.zeros(env.action_space.shape, np.float32))
    assert (observation == good).all()
    assert info["state"] == before["state"]
    assert (reward, terminated, truncated, env.failures) == (0, False, True, 1)
    assert "no longer finite" in caplog.text
    assert np.isfinite(env.reset(seed=0)[0]).all(), "and the next one begins"
    env.close()


def assert_begins_alike(env):
    """For every seed, and whatever happened before."""
    first, info = env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(3):
        env.step(env.action_space.sample())
    again, other = env.reset(seed=1)
    assert (again == first).all()
    assert info == other
    env.close()
