"""No bonus: the baseline."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.bonuses.base import Bonus
from cfn.types import Array, State


class NoBonus(Bonus):
    """Every state is worth nothing beyond its reward."""

    def __init__(self, observation_space: gym.Space[Any], seed: int = 0) -> None:
        del observation_space, seed  # a bonus's signature; this one has no use for them

    def observe(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Zeros."""
        return self.novelty(observations, states)

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Zeros."""
        del states
        return np.zeros(len(observations))
