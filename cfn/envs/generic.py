"""Any Gymnasium environment, by its id (`env=gym env.id=CartPole-v1`), with arrays as observations."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from cfn.envs import registry
from cfn.envs.arrays import choose_entry, with_arrays
from cfn.envs.mujoco import log_warnings
from cfn.envs.rendering import prepare_rendering
from cfn.envs.spaces import is_image
from cfn.envs.true_states import Bin, binned, binned_entries
from cfn.errors import FAULTS, BadValueError, UsageError, one_line
from cfn.types import Positive

LIMITS = ("max_steps", "max_episode_steps", "_max_episode_steps")
"""Attributes in which environments and Gymnasium's TimeLimit keep their step limit."""

OTHER_AGENT = "agent=sb3 agent.algorithm=PPO (pip install 'cfn-rl[sb3]')"
"""The advice for spaces that the agents of this package do not support."""


def make(
    id: str,
    kwargs: dict[str, Any] | None = None,
    max_steps: Positive | None = None,
    bin: Bin | None = None,
    observation: str | None = None,
    reset_options: dict[str, Any] | None = None,
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
        reset_options: Options of every reset, `env.reset(options=...)`, for environments that take some.
        render_mode: `rgb_array` or None.
    """
    prepare_rendering()
    spec = registry.find(id)
    try:
        # A constructor need not take render_mode.
        rendered: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}
        env = gym.make(spec, max_episode_steps=max_steps, **rendered, **(kwargs or {}))
    except FAULTS as error:
        reason = one_line(error)
        lacking = re.search(r"missing \d+ required .*?argument.*?: '(\w+)'", reason)
        hint = f": env.kwargs.{lacking[1]}=... sets this argument" if lacking else ""
        raise BadValueError("kwargs" if kwargs else "id", f"{id} cannot be created: {reason}{hint}") from error
    if "mujoco" in sys.modules:
        log_warnings()
    if reset_options:
        env = WithResetOptions(env, reset_options)
    if isinstance(bin, dict):
        env = binned_entries(env, bin)
    if observation is not None:
        env = choose_entry(env, observation)
    env = with_arrays(env, count=bin is None, key="env.observation" if observation is None else None)
    return env if bin is None or isinstance(bin, dict) else binned(env, bin)


class WithResetOptions(gym.Wrapper[Any, Any, Any, Any]):
    """Passes options to every reset.

    Args:
        env: Environment to wrap.
        options: The options.
    """

    def __init__(self, env: gym.Env[Any, Any], options: Mapping[str, Any]) -> None:
        super().__init__(env)
        self._options = dict(options)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; options of this call come first."""
        return self.env.reset(seed=seed, options=self._options | (options or {}))


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


def action_kind(space: gym.Space[Any], observation_space: gym.Space[Any]) -> Literal["discrete", "continuous"]:
    """Return the kind of the actions; raise `UsageError` if neither Rainbow nor SAC supports the spaces.

    Args:
        space: Action space.
        observation_space: Observation space, with arrays as observations.
    """
    if isinstance(space, gym.spaces.Discrete):
        return "discrete"
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and np.dtype(space.dtype).kind == "f":
        if is_image(observation_space):
            raise UsageError(f"images with actions of {space} are not supported by rainbow and sac: use {OTHER_AGENT}")
        return "continuous"
    multiple = isinstance(space, gym.spaces.MultiDiscrete | gym.spaces.MultiBinary)
    raise UsageError(
        f"actions of {space} are not supported by rainbow and sac: wrap the environment so that its actions are "
        f"Discrete, or vectors of floats (Box){f', or use {OTHER_AGENT}' if multiple else ''}"
    )
