"""The agent that does not learn: uniformly random actions, as in the Taxi experiments (Appendix E.1)."""

import copy
from typing import Any

import gymnasium as gym
import numpy as np

from cfn import seeding
from cfn.agents.base import Agent
from cfn.types import Array


class RandomAgent(Agent):
    """Samples the action space. Exploring and being evaluated draw from two streams, so neither shifts the other."""

    def __init__(self, action_space: gym.Space[Any], seed: int = 0) -> None:
        self._spaces = {stream: copy.deepcopy(action_space) for stream in ("explore", "evaluate")}
        for stream, space in self._spaces.items():
            space.seed(seeding.integer(seed, stream))

    def act(self, observations: Array, explore: bool = True) -> Array:
        """One sample of the action space for each observation."""
        space = self._spaces["explore" if explore else "evaluate"]
        return np.stack([space.sample() for _ in observations])

    def state_dict(self) -> dict[str, Any]:
        """The states of both generators."""
        return {stream: space.np_random.bit_generator.state for stream, space in self._spaces.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the states of both generators."""
        for stream, space in self._spaces.items():
            space.np_random.bit_generator.state = state[stream]
