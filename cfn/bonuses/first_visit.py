"""Pays for the first visit of an episode: the episodic part of count-based bonuses (Henaff et al., 2023).

[N_episode(s) = 1] alone does not explore: it pays the same in every episode. It is meant as `bonus.episodic` of
`bonus=product`, where a global bonus sets the value of a first visit.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np

from cfn.bonuses.base import Bonus
from cfn.bonuses.episodic_counts import EpisodicCounts
from cfn.bonuses.visits import Visits
from cfn.types import Array, NonNegativeFloat, Positive, PositiveFloat, State


class FirstVisitBonus(Bonus):
    """Pays `scale` for the first visit to an observation in an episode, and 0 for the others.

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        num_envs: Number of environments.
        scale: Weight of the bonus in the reward.
        bin: Width of the bins in which numbers of vectors count as equal.
    """

    kind: ClassVar[Literal["episode"]] = "episode"

    def __init__(
        self,
        observation_space: gym.Space[Any],
        num_envs: Positive = 1,
        scale: NonNegativeFloat = 0.01,
        bin: PositiveFloat = 0.1,
    ) -> None:
        self.scale = scale
        self._counts = EpisodicCounts("first_visit", observation_space, num_envs, bin)

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Count the visits of the episodes, and return `scale` for each first one."""
        (begins,) = (visits or Visits()).require("first_visit", "begins")
        self._counts.clear(begins)
        rewards: Array = self.scale * (self._counts.visit(observations) == 1)
        return rewards

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return ones: at the beginning of an episode, every observation is new."""
        return np.ones(len(self._counts.check(observations)))

    def state_dict(self) -> dict[str, Any]:
        return {"counts": self._counts.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._counts.load_state_dict(state["counts"])
