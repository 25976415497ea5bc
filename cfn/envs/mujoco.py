"""Base of the MuJoCo tasks: sparse reward, termination on success, a step limit, and a position as true state.

The tasks run on gymnasium-robotics. The paper's used D4RL, which cannot be imported on a current Python.
"""

import contextlib
import io
import logging
import math
import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.envs.rendering import prepare_rendering, render
from cfn.errors import UsageError, needs_extra
from cfn.types import Array, State

log = logging.getLogger(__name__)

UNSUPPORTED_FROM = (3, 12)
"""First unsupported version of mujoco: gymnasium-robotics' Fetch tasks fail, and the ant's trajectories differ."""


def register_tasks() -> None:
    """Register gymnasium-robotics' ids; raise `UsageError` if the installed mujoco is not supported."""
    prepare_rendering()
    with needs_extra("paper"):
        import mujoco  # mujoco and gymnasium_robotics are slow to import, and most environments do not need them

    if tuple(int(part) for part in mujoco.__version__.split(".")[:2]) >= UNSUPPORTED_FROM:
        limit = ".".join(map(str, UNSUPPORTED_FROM))
        raise UsageError(
            f"mujoco {mujoco.__version__} is too new for the robotics tasks: run pip install 'mujoco<{limit}'"
        )
    log_warnings()
    with needs_extra("paper"), contextlib.redirect_stderr(io.StringIO()):  # prints notices about other tasks
        import gymnasium_robotics
    gym.register_envs(gymnasium_robotics)


def log_warnings() -> None:
    """Send MuJoCo's warnings to the log; by default it writes them to a file in the current folder."""
    import mujoco

    mujoco.set_mju_user_warning(lambda message: log.debug("MuJoCo: %s", message))


@contextlib.contextmanager
def private_temporary_folder() -> Iterator[Path]:
    """Redirect all temporary files of this process to a new folder, and delete it at the end.

    gymnasium-robotics writes the maze beside, not inside, the temporary folder that it deletes: without this, each
    construction would leave a file behind.
    """
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before


class SparseTask(gym.Env[Array, Array]):
    """Task with a reward of 1 and termination on success, and truncation after `max_steps`.

    If the simulation is no longer finite, the episode is truncated at its last finite observation, with a warning.

    Args:
        env: Environment of gymnasium-robotics, without a step limit.
        size: Dimensions of an observation.
        max_steps: Steps until truncation.
        bin: Width of the bins, in metres, that turn `_position` into the true state.
    """

    def __init__(self, env: gym.Env[Any, Any], size: int, max_steps: int, bin: float) -> None:
        from mujoco import mjtWarning

        self._env, self.max_steps, self._bin = env, max_steps, bin
        self._fatal_warnings = (mjtWarning.mjWARN_BADQPOS, mjtWarning.mjWARN_BADQVEL, mjtWarning.mjWARN_BADQACC)
        self.metadata, self.render_mode = env.metadata, env.render_mode
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = env.action_space
        self.failures = 0  # episodes truncated because the simulation was no longer finite
        self._steps = 0
        self._last = np.zeros(size, np.float32)
        self._state: State = ()

    @abstractmethod
    def _reset_task(self, seed: int | None) -> Array:
        """Reset the environment, and return its first observation."""

    @abstractmethod
    def _parse(self, observation: Any, info: dict[str, Any]) -> tuple[Array, bool]:
        """Return the observation as an array, and whether the task is solved."""

    def _simulate(self, action: Array) -> tuple[Array, bool]:
        """Apply an action, and return the next observation and whether the task is solved."""
        observation, _, _, _, info = self._env.step(action)
        return self._parse(observation, info)

    @abstractmethod
    def _position(self, observation: Array) -> Array:
        """Return the position that the true state is made of."""

    def _early_end(self) -> tuple[bool, bool]:
        """Return (terminated, truncated) for a task that can no longer be solved."""
        return False, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed, options=options)
        self._steps = 0
        self._accept(self._reset_task(seed))
        return self._last, {"state": self._state}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Apply an action."""
        array, success = self._simulate(action)
        self._steps += 1
        if self._unstable() or not np.isfinite(array).all():
            self.failures += 1
            log.warning(f"The simulation is no longer finite after {self._steps} steps: its episode is truncated.")
            return self._last, 0.0, False, True, {"state": self._state, "success": False}
        self._accept(array)
        failed, cut_off = (False, False) if success else self._early_end()
        ended = success or failed
        truncated = not ended and (cut_off or self._steps >= self.max_steps)
        return self._last, float(success), ended, truncated, {"state": self._state, "success": success}

    def _unstable(self) -> bool:
        """Return whether MuJoCo found numbers that are not finite; it then resets the simulation silently."""
        warnings = self._env.data.warning  # type: ignore[attr-defined]
        return any(warnings[kind].number for kind in self._fatal_warnings)

    def _accept(self, observation: Array) -> None:
        """Keep a finite observation and its true state."""
        self._last = observation.astype(np.float32)
        self._state = tuple(math.floor(value / self._bin) for value in self._position(self._last).tolist())

    def render(self) -> Any:
        """Return a picture; no display is needed."""
        return render(self._env)

    def close(self) -> None:
        """Free MuJoCo's memory and rendering contexts."""
        self._env.close()
