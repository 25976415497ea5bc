"""Rendering without a display: the OpenGL of MuJoCo and pyglet, and one sentence if a picture cannot be drawn."""

import contextlib
import ctypes
import logging
import os
import sys
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.errors import FAULTS, UsageError
from cfn.types import Array


def prepare_rendering() -> None:
    """Choose drawing without a display if there is none; call this before anything imports mujoco, pyglet or pygame.

    mujoco reads MUJOCO_GL when it is imported, and an environment that is not rendered imports it as well. Packages
    that draw their observations with pyglet, such as miniworld, cannot be imported without a display otherwise. The
    drivers of SDL, which draws for pygame, are a list: some packages draw nothing if the only one is `dummy`.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    headless = sys.platform == "linux" and not os.environ.get("DISPLAY")
    if headless and (backend := find_gl_backend()):
        os.environ.setdefault("MUJOCO_GL", backend)
        if backend == "egl":  # all that pyglet can do
            os.environ.setdefault("PYGLET_HEADLESS", "true")
    if headless and not os.environ.get("WAYLAND_DISPLAY"):
        os.environ.setdefault("SDL_VIDEODRIVER", "offscreen,dummy")
    logging.getLogger("OpenGL").setLevel(logging.WARNING)  # hides hints about optional accelerators


def find_gl_backend() -> str | None:
    """Return a value of MUJOCO_GL that can render without a display here; mujoco fails if its library is missing."""
    for backend, library in (("egl", "libEGL.so.1"), ("osmesa", "libOSMesa.so.8"), ("osmesa", "libOSMesa.so")):
        with contextlib.suppress(OSError):
            ctypes.CDLL(library)
            return backend
    return None


def render(env: gym.Env[Any, Any]) -> Any:
    """Return the environment's picture; raise `UsageError` if it cannot be drawn."""
    try:
        return env.render()
    except UsageError:
        raise
    except FAULTS as error:  # OpenGL, pygame and others raise errors of many types
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        uses_mujoco = "mujoco" in sys.modules and not isinstance(error, gym.error.DependencyNotInstalled)
        hint = "; set MUJOCO_GL=egl or MUJOCO_GL=osmesa" if uses_mujoco else ""
        raise UsageError(f"the environment cannot be rendered: {reason}{hint}") from error


def as_picture(rendered: Any) -> Array:
    """Return what `render` returned as bytes, height x width x 3; raise `UsageError` if it is no picture.

    Floats up to 1 are shares of the full brightness. Other floats are clipped to 0 to 255, as larger integers are.
    """
    if not isinstance(rendered, np.ndarray) or rendered.dtype.kind not in "biuf":
        kind = type(rendered).__name__
        raise UsageError(f"the environment cannot be filmed: render() returned a {kind}, not an image")
    picture: Array = rendered[..., None] if rendered.ndim == 2 else rendered
    if picture.ndim != 3 or picture.shape[-1] not in (1, 3, 4) or not picture.size:
        shape = rendered.shape
        raise UsageError(f"the environment cannot be filmed: render() returned an array of shape {shape}, not an image")
    picture = np.repeat(picture, 3, axis=-1) if picture.shape[-1] == 1 else picture[..., :3]
    if picture.dtype == np.uint8:
        return picture
    if picture.dtype.kind == "b" or (picture.dtype.kind == "f" and np.nanmax(picture) <= 1):
        picture = picture * 255.0
    return np.nan_to_num(picture).clip(0, 255).round().astype(np.uint8)
