"""What the paper's MuJoCo tasks have in common: a sparse reward, an end on success, a horizon, and a place that counts.

The tasks run on gymnasium-robotics. D4RL, from which the paper has them, cannot be imported on a current Python.
"""

import contextlib
import ctypes
import io
import logging
import math
import os
import sys
from abc import abstractmethod
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.errors import UsageError
from cfn.types import Array, State

log = logging.getLogger(__name__)

BROKEN_FROM = (3, 12)
"""The mujoco from which on gymnasium-robotics' Fetch tasks fail, and trajectories of the ant are others."""


def register_tasks() -> None:
    """Make gymnasium-robotics' ids known, and refuse a mujoco on which its tasks do not run as they should."""
    if sys.platform == "linux" and not os.environ.get("DISPLAY") and (way := way_to_draw()):
        os.environ.setdefault("MUJOCO_GL", way)  # pictures without a display; read when mujoco is imported
    logging.getLogger("OpenGL").setLevel(logging.WARNING)  # it tells everyone what it could be accelerated by
    import mujoco  # both are slow to import, and most environments need none

    if tuple(int(part) for part in mujoco.__version__.split(".")[:2]) >= BROKEN_FROM:
        wanted = ".".join(map(str, BROKEN_FROM))
        raise UsageError(
            f"mujoco {mujoco.__version__} is too new for the robotics tasks: pip install 'mujoco<{wanted}'"
        )
    mujoco.set_mju_user_warning(lambda message: log.debug("MuJoCo: %s", message))  # else it writes a file of its own
    with contextlib.redirect_stderr(io.StringIO()):  # it prints news of tasks that are not ours
        import gymnasium_robotics
    gym.register_envs(gymnasium_robotics)


def way_to_draw() -> str | None:
    """How MuJoCo can draw without a display, by the libraries that are there; told of a missing one, it fails."""
    for way, library in (("egl", "libEGL.so.1"), ("osmesa", "libOSMesa.so.8"), ("osmesa", "libOSMesa.so")):
        with contextlib.suppress(OSError):
            ctypes.CDLL(library)
            return way
    return None


class SparseTask(gym.Env[Array, Array]):
    """Reward 1 and the end of the episode on success; truncation after `max_steps`.

    Physics that are no longer finite truncate the episode at its last good observation, with a warning.

    Args:
        env: gymnasium-robotics' environment, without a limit of its own.
        size: Numbers in an observation.
        max_steps: Steps until truncation.
        bin: Width of the bins, in metres, into which `_place` is cut to give the true state.
    """

    def __init__(self, env: gym.Env[Any, Any], size: int, max_steps: int, bin: float) -> None:
        from mujoco import mjtWarning

        self._env, self._max_steps, self._bin = env, max_steps, bin
        self._bad_numbers = (mjtWarning.mjWARN_BADQPOS, mjtWarning.mjWARN_BADQVEL, mjtWarning.mjWARN_BADQACC)
        self.metadata, self.render_mode = env.metadata, env.render_mode
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = env.action_space
        self.failures = 0  # episodes that the physics ended
        self._steps = 0
        self._last = np.zeros(size, np.float32)
        self._state: State = ()

    @abstractmethod
    def _begin(self, seed: int | None) -> Array:
        """Reset the environment, and return its first observation."""

    @abstractmethod
    def _look(self, observation: Any, info: dict[str, Any]) -> tuple[Array, bool]:
        """The observation as an array, and whether the task is solved."""

    @abstractmethod
    def _place(self, observation: Array) -> Array:
        """What is counted: a position."""

    def _over(self) -> tuple[bool, bool]:
        """Whether an unsolved task cannot be solved any more: (terminated, truncated)."""
        return False, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed, options=options)
        self._steps = 0
        self._take(self._begin(seed))
        return self._last, {"state": self._state}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One step of the task."""
        observation, _, _, _, info = self._env.step(action)
        array, success = self._look(observation, info)
        self._steps += 1
        if self._unstable() or not np.isfinite(array).all():
            self.failures += 1
            log.warning(f"the physics of an episode are no longer finite after {self._steps} steps: it ends here")
            return self._last, 0.0, False, True, {"state": self._state, "success": False}
        self._take(array)
        failed, gone = (False, False) if success else self._over()
        ended = success or failed
        truncated = not ended and (gone or self._steps >= self._max_steps)
        return self._last, float(success), ended, truncated, {"state": self._state, "success": success}

    def _unstable(self) -> bool:
        """Whether MuJoCo met numbers that are not finite, upon which it silently begins anew."""
        warnings = self._env.data.warning  # type: ignore[attr-defined]
        return any(warnings[kind].number for kind in self._bad_numbers)

    def _take(self, observation: Array) -> None:
        """Keep what is good: an observation, and the true state that belongs to it."""
        self._last = observation.astype(np.float32)
        self._state = tuple(math.floor(value / self._bin) for value in self._place(self._last).tolist())

    def render(self) -> Any:
        """A picture, drawn without a display."""
        try:
            return self._env.render()
        except Exception as error:  # whatever OpenGL may say
            reason = " ".join(str(error).split())
            raise UsageError(f"MuJoCo cannot draw here ({reason}): set MUJOCO_GL=egl, or osmesa") from error

    def close(self) -> None:
        """Free what MuJoCo holds."""
        self._env.close()
