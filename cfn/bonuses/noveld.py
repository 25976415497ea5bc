"""NovelD (Zhang et al., 2021): pays for steps from familiar to novel states, once per episode and state.

nov(s') - alpha nov(s) is large only at the border between states that were visited often and states that were not. The
novelty is that of any bonus that is paid for states; the paper's is RND. As in the published code, the novelty learns
from next observations s': an initial state is not counted, and the last state of an episode is.

Departures: the last step of an episode compares s with its true next observation (the published code takes the first
one of the next episode), and the first observation of an episode counts as visited in it. Equal images are found by
their content, equal vectors by bins.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.bonuses.base import Bonus
from cfn.bonuses.combination import Combination, require_kind
from cfn.bonuses.episodic_counts import EpisodicCounts
from cfn.bonuses.visits import Visits
from cfn.nn.running_stats import RunningStats
from cfn.types import Array, NonNegativeFloat, Positive, PositiveFloat, State


class NovelDBonus(Combination):
    """scale * max(nov(s') - alpha * nov(s), 0) * [first visit to s' in this episode].

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        novelty: Bonus whose B(s) is the novelty; its scale has no effect.
        num_envs: Number of environments.
        scale: Weight of the bonus in the reward.
        alpha: Weight of the novelty of s; 0.5 in MiniGrid, 0.1 in MiniHack.
        normalize: Whether the differences are divided by their running standard deviation, as in MiniHack.
        bin: Width of the bins in which numbers of vectors count as equal.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        novelty: Bonus,
        num_envs: Positive = 1,
        scale: NonNegativeFloat = 0.1,
        alpha: NonNegativeFloat = 0.5,
        normalize: bool = True,
        bin: PositiveFloat = 0.1,
    ) -> None:
        advice = "bonus=noveld compares the novelty of single states over the whole run: choose one such as rnd or cfn"
        require_kind("novelty", novelty, ("state",), advice)
        super().__init__({"novelty": novelty})
        self.scale, self._alpha, self._normalize = scale, alpha, normalize
        self._novelty = novelty
        self._counts = EpisodicCounts("noveld", observation_space, num_envs, bin)
        self._stats = RunningStats()

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Return the scaled differences of first visits; the novelty learns from the next observations."""
        visits = visits or Visits()
        after, begins = visits.require("noveld", "next_observations", "begins")
        self._counts.clear(begins)
        self._counts.visit(observations, begins)
        first = self._counts.visit(after) == 1
        step = self._novelty.novelty(after, visits.next_states) - self._alpha * self._novelty.novelty(
            observations, visits.states
        )
        differences = np.maximum(step, 0) * first
        self._novelty.observe(after, Visits(states=visits.next_states))
        if self._normalize:
            self._stats.update(differences)
            differences = differences / np.sqrt(self._stats.variance)
        rewards: Array = self.scale * differences
        return rewards

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return nov(s): without a step and an episode, only the novelty of the state itself is left."""
        return self._novelty.novelty(observations, states)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "counts": self._counts.state_dict(), "stats": self._stats.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._counts.load_state_dict(state["counts"])
        self._stats.load_state_dict(state["stats"])
