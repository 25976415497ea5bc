import ctypes
import os
import subprocess
import sys

import gymnasium as gym
import pytest
from observing import Observing

from cfn.envs.rendering import find_gl_backend, prepare_mujoco, render
from cfn.errors import UsageError

DRAW = """
from cfn.envs.generic import make
from cfn.envs.rendering import render
make("InvertedPendulum-v5").close()  # as training does; this imports mujoco
env = make("InvertedPendulum-v5", render_mode="rgb_array")
env.reset(seed=0)
print(render(env).std() > 10)
env.close()
"""


@pytest.mark.process
@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux" or not find_gl_backend(), reason="neither EGL nor OSMesa is installed")
def test_any_mujoco_environment_is_drawn_without_a_display():
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "MUJOCO_GL")}
    done = subprocess.run([sys.executable, "-c", DRAW], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n", done.stderr


def test_without_a_library_to_draw_with_mujoco_is_left_alone(monkeypatch):
    """If MUJOCO_GL named a library that is not installed, mujoco could not be imported."""

    def absent(name):
        raise OSError(f"{name} is not there")

    for name in ("DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", absent)
    assert find_gl_backend() is None
    prepare_mujoco()
    assert "MUJOCO_GL" not in os.environ
    monkeypatch.setattr(ctypes, "CDLL", lambda name: {"libOSMesa.so": 1}.get(name) or absent(name))
    assert find_gl_backend() == "osmesa"


@pytest.mark.parametrize("name", ["DISPLAY", "MUJOCO_GL"])
def test_a_display_or_a_choice_of_the_users_is_respected(name, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    monkeypatch.delenv("DISPLAY", raising=False)
    if name == "DISPLAY":
        monkeypatch.setenv("DISPLAY", ":0")
        monkeypatch.delenv("MUJOCO_GL")
    before = os.environ.get("MUJOCO_GL")
    prepare_mujoco()
    assert os.environ.get("MUJOCO_GL") == before


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("no OpenGL context\nhere."), "cannot be rendered: no OpenGL context here; set MUJOCO_GL=egl"),
        (gym.error.DependencyNotInstalled("pygame is not installed"), "cannot be rendered: pygame is not installed$"),
        (UsageError("as it was"), "^as it was$"),
    ],
    ids=["opengl", "dependency", "sentence"],
)
def test_a_picture_that_cannot_be_drawn_is_one_sentence(error, message, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", sys.modules.get("mujoco", sys))
    env = Observing(gym.spaces.Discrete(2))

    def broken():
        raise error

    env.render = broken
    with pytest.raises(UsageError, match=message):
        render(env)
