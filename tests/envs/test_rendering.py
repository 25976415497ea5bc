import ctypes
import os
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from observing import Observing

from cfn.envs.rendering import as_picture, find_gl_backend, prepare_rendering, render
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
    prepare_rendering()
    assert "MUJOCO_GL" not in os.environ
    monkeypatch.setattr(ctypes, "CDLL", lambda name: {"libOSMesa.so": 1}.get(name) or absent(name))
    assert find_gl_backend() == "osmesa"


@pytest.mark.parametrize(
    ("library", "expected"),
    [("libEGL.so.1", ("egl", "true")), ("libOSMesa.so.8", ("osmesa", None)), ("another.so", (None, None))],
)
def test_packages_that_draw_with_pyglet_are_imported_without_a_display(library, expected, monkeypatch):
    for name in ("DISPLAY", "MUJOCO_GL", "PYGLET_HEADLESS"):
        monkeypatch.setenv(name, "")  # restored after the test
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "platform", "linux")

    def load(name):
        if name != library:
            raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", load)
    prepare_rendering()
    assert (os.environ.get("MUJOCO_GL"), os.environ.get("PYGLET_HEADLESS")) == expected


@pytest.mark.parametrize("name", ["DISPLAY", "MUJOCO_GL"])
def test_a_display_or_a_choice_of_the_users_is_respected(name, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    monkeypatch.setenv("PYGLET_HEADLESS", "false")
    monkeypatch.delenv("DISPLAY", raising=False)
    if name == "DISPLAY":
        monkeypatch.setenv("DISPLAY", ":0")
        monkeypatch.delenv("MUJOCO_GL")
    before = os.environ.get("MUJOCO_GL")
    prepare_rendering()
    assert os.environ.get("MUJOCO_GL") == before
    assert os.environ["PYGLET_HEADLESS"] == "false"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("no OpenGL context\nhere."), "cannot be rendered: no OpenGL context here; set MUJOCO_GL=egl"),
        (gym.error.DependencyNotInstalled("pygame is not installed"), "cannot be rendered: pygame is not installed$"),
        (UsageError("as it was"), "^as it was$"),
        (SystemExit("the viewer has gone"), "cannot be rendered: the viewer has gone"),
    ],
    ids=["opengl", "dependency", "sentence", "exit"],
)
def test_a_picture_that_cannot_be_drawn_is_one_sentence(error, message, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", sys.modules.get("mujoco", sys))
    env = Observing(gym.spaces.Discrete(2))

    def broken():
        raise error

    env.render = broken
    with pytest.raises(UsageError, match=message):
        render(env)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "offscreen,dummy"),
        ({"SDL_VIDEODRIVER": "x11"}, "x11"),
        ({"DISPLAY": ":0"}, None),
        ({"WAYLAND_DISPLAY": "wayland-0"}, None),
    ],
    ids=["headless", "chosen", "x11", "wayland"],
)
def test_pygame_draws_without_a_display(variables, expected, monkeypatch):
    """highway-env leaves its pictures black if the driver is `dummy` alone."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "MUJOCO_GL", "PYGLET_HEADLESS"):
        monkeypatch.setenv(name, "")  # restored after the test
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", "linux")
    prepare_rendering()
    assert os.environ.get("SDL_VIDEODRIVER") == expected


GREY = np.array([[0, 51], [102, 255]], np.uint8)


@pytest.mark.parametrize(
    "rendered",
    [
        np.stack([GREY] * 3, axis=-1),
        np.stack([GREY] * 4, axis=-1),
        np.stack([GREY] * 3, axis=-1) / 255,
        np.stack([GREY] * 3, axis=-1).astype(np.float32) + 0.2,
        np.stack([GREY] * 3, axis=-1).astype(np.int64),
        np.where(GREY == 255, 1000, GREY.astype(np.int64)),
        GREY,
        GREY[..., None] / np.float32(255),
    ],
    ids=["bytes", "alpha", "shares", "floats", "integers", "too large", "grey", "one channel"],
)
def test_pictures_of_all_kinds_become_bytes_in_colour(rendered):
    """MinAtar renders shares of the full brightness."""
    picture = as_picture(rendered)
    assert picture.dtype == np.uint8
    assert (picture == np.stack([GREY] * 3, axis=-1)).all()


def test_a_mask_is_black_and_white():
    assert as_picture(GREY > 60)[..., 0].tolist() == [[0, 0], [255, 255]]


@pytest.mark.parametrize("rendered", [None, "text", [GREY], np.zeros(3), np.zeros((2, 2, 7)), np.zeros((0, 2, 3))])
def test_what_is_no_picture_is_refused(rendered):
    with pytest.raises(UsageError, match=r"cannot be filmed: render\(\) returned an? "):
        as_picture(rendered)
