"""Any Gymnasium environment, by its id (`env=gym env.id=CartPole-v1`), with arrays as observations."""

import math
import sys
from collections.abc import Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from cfn.envs import registry
from cfn.envs.arrays import choose_entry, with_arrays
from cfn.envs.mujoco import log_warnings
from cfn.envs.rendering import prepare_mujoco
from cfn.envs.true_states import Bin, binned, binned_entries
from cfn.errors import BadValueError, UsageError
from cfn.types import Positive

LIMITS = ("max_steps", "max_episode_steps", "_max_episode_steps")
"""Attributes in which environments and Gymnasium's TimeLimit keep their step limit."""


def make(
    id: str,
    kwargs: dict[str, Any] | None = None,
    max_steps: Positive | None = None,
    bin: Bin | None = None,
    observation: str | None = None,
    render_mode: str | None = None,
) -> gym.Env[Any, Any]:
    """Create the environment `id`, with arrays as observations and, where available, a true state to count.

    Args:
        id: Gymnasium id; `module:id` imports the module first.
        kwargs: Arguments of the environment's constructor.
        max_steps: Steps until truncation; None keeps the registered limit.
        bin: Widths of the bins that turn an observation into a true state, for environments without `info["state"]`: a
            number, or a list with one width per number (None leaves one out). For Dict observations also widths by
            entry; they refer to the whole observation, whichever entry is chosen. Discrete, MultiDiscrete and
            MultiBinary observations, and tuples of them, do not need it: they are the true state.
        observation: Entry to choose from a Dict observation. None flattens all numeric entries.
        render_mode: `rgb_array` or None.
    """
    prepare_mujoco()
    spec = registry.find(id)
    try:
        env = gym.make(spec, max_episode_steps=max_steps, render_mode=render_mode, **(kwargs or {}))
    except Exception as error:  # a third-party constructor may raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadValueError("kwargs" if kwargs else "id", f"{id} cannot be created: {reason}") from error
    if "mujoco" in sys.modules:
        log_warnings()
    if isinstance(bin, dict):
        env = binned_entries(env, bin)
    if observation is not None:
        env = choose_entry(env, observation)
    env = with_arrays(env, count=bin is None, key="env.observation" if observation is None else None)
    return env if bin is None or isinstance(bin, dict) else binned(env, bin)


def step_limit(env: gym.Env[Any, Any]) -> int | None:
    """Return the number of steps after which an episode is truncated; None if no wrapper or attribute says so."""
    layers = [env]
    while isinstance(layers[-1], gym.Wrapper):
        layers.append(layers[-1].env)
    limits = [getattr(layer, name, None) for layer in layers for name in LIMITS] + [_frame_limit(layers)]
    return min((int(limit) for limit in limits if isinstance(limit, int | np.integer) and limit > 0), default=None)


def _frame_limit(layers: Sequence[gym.Env[Any, Any]]) -> int | None:
    """Return the step limit of an Atari game, which ALE counts in frames; None for other environments."""
    arguments = layers[-1].spec.kwargs if layers[-1].spec else {}
    if not (frames := arguments.get("max_num_frames_per_episode")):
        return None
    skip = int(np.min(arguments.get("frameskip", 1)))  # of a range of skips, the lowest gives the most steps
    skip *= math.prod(layer.frame_skip for layer in layers if isinstance(layer, gym.wrappers.AtariPreprocessing))
    return math.ceil(int(frames) / skip)


def action_kind(space: gym.Space[Any]) -> Literal["discrete", "continuous"]:
    """Return the kind of the actions; raise `UsageError` for actions that no learning agent supports."""
    if isinstance(space, gym.spaces.Discrete):
        return "discrete"
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and np.dtype(space.dtype).kind == "f":
        return "continuous"
    raise UsageError(
        f"actions of {space} are not supported: wrap the environment so that its actions are Discrete, "
        "or vectors of floats (Box)"
    )
