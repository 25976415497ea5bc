"""Rendering without a display: the OpenGL backend of MuJoCo, and one sentence if a picture cannot be drawn."""

import contextlib
import ctypes
import logging
import os
import sys
from typing import Any

import gymnasium as gym

from cfn.errors import UsageError


def prepare_mujoco() -> None:
    """Choose MuJoCo's OpenGL backend if there is no display; call this before anything imports mujoco.

    mujoco reads MUJOCO_GL when it is imported, and an environment that is not rendered imports it as well.
    """
    headless = sys.platform == "linux" and not os.environ.get("DISPLAY")
    if headless and "MUJOCO_GL" not in os.environ and (backend := find_gl_backend()):
        os.environ["MUJOCO_GL"] = backend
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
    except Exception as error:  # OpenGL, pygame and others raise errors of many types
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        uses_mujoco = "mujoco" in sys.modules and not isinstance(error, gym.error.DependencyNotInstalled)
        hint = "; set MUJOCO_GL=egl or MUJOCO_GL=osmesa" if uses_mujoco else ""
        raise UsageError(f"the environment cannot be rendered: {reason}{hint}") from error
