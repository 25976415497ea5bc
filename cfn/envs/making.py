"""Making the environment of a run, also in other processes."""

from typing import Any

import gymnasium as gym

from cfn.envs.arrays import with_arrays
from cfn.envs.stack import StackFrames
from cfn.schema import Component


def make(env: Component, frame_stack: int, run_seed: int, render_mode: str | None = None) -> gym.Env[Any, Any]:
    """Return one environment with arrays as observations.

    Args:
        env: The checked group `env` of the config.
        frame_stack: Images per observation.
        run_seed: Seed that all environments of a run are offered.
        render_mode: `rgb_array` or None.
    """
    made = with_arrays(env.make(gym.Env, render_mode=render_mode, run_seed=run_seed))
    return StackFrames(made, frame_stack) if frame_stack > 1 else made
