"""Agent that does not learn: uniformly random actions, as in the Taxi experiments (Appendix E.1)."""

import copy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from cfn import seeding
from cfn.agents.base import Agent
from cfn.errors import UsageError
from cfn.types import Array


class RandomAgent(Agent):
    """Samples actions uniformly.

    Training and evaluation have separate random streams, so that evaluations do not change the training actions.

    Args:
        action_space: Action space to sample from.
        seed: Seed of both streams.
    """

    def __init__(self, action_space: gym.Space[Any], seed: int = 0) -> None:
        if not isinstance(action_space, Box | Discrete | MultiBinary | MultiDiscrete):
            raise UsageError(
                f"actions of {action_space} are not supported: wrap the environment so that its actions are arrays"
            )
        self._spaces = {stream: copy.deepcopy(action_space) for stream in ("explore", "evaluate")}
        for stream, space in self._spaces.items():
            space.seed(seeding.integer(seed, stream))

    def act(self, observations: Array, explore: bool = True) -> Array:
        """Sample an action for each observation."""
        space = self._spaces["explore" if explore else "evaluate"]
        return np.stack([space.sample() for _ in observations])

    def state_dict(self) -> dict[str, Any]:
        return {stream: space.np_random.bit_generator.state for stream, space in self._spaces.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for stream, space in self._spaces.items():
            space.np_random.bit_generator.state = state[stream]
