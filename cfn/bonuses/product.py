"""Product of a global and an episodic bonus (Henaff et al., 2023): pays for states new to the run, once per episode.

The paper combines counts, [N_episode(s) = 1] / sqrt(N(s)), and functions, E3B x RND or E3B x NovelD. Here any bonus
with a memory of the whole run can be multiplied by any bonus with a memory of one episode. The first factor is B(s) of
the global bonus, without scale and normalisation and after this visit is counted. The second is the reward
of the episodic bonus for the visit, with its own scale and normalisation.

Departures: a visit is counted once, at the moment when an action is taken (the published code counts some states twice
and forgets the first of each episode), there is one table for all environments, and the running standard deviation is
that of all rewards.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cfn.bonuses.base import Bonus
from cfn.bonuses.combination import Combination, require_kind
from cfn.bonuses.visits import Visits
from cfn.nn.running_stats import RunningStats
from cfn.types import Array, NonNegativeFloat, State


class ProductBonus(Combination):
    """scale * B(s) of a global bonus * reward of an episodic bonus / running standard deviation of this product.

    Args:
        global_: Bonus with a memory of the whole run; its scale has no effect.
        episodic: Bonus with a memory of one episode.
        scale: Weight of the bonus in the reward.
        normalize: Whether the product is divided by its running standard deviation.
    """

    def __init__(self, global_: Bonus, episodic: Bonus, scale: NonNegativeFloat = 0.1, normalize: bool = True) -> None:
        advice = "needs a memory of the whole run here: choose one such as cfn, rnd or count"
        require_kind("global", global_, ("state", "transition"), f"bonus=product {advice}")
        advice = "needs a memory of one episode here: choose e3b or first_visit"
        require_kind("episodic", episodic, ("episode",), f"bonus=product {advice}")
        super().__init__({"global": global_, "episodic": episodic})
        self.scale, self._normalize = scale, normalize
        self._global, self._episodic = global_, episodic
        self._stats = RunningStats()

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Count the visits in both parts, and return the scaled products."""
        self._global.observe(observations, visits)
        states = visits.states if visits is not None else None
        products = self._global.novelty(observations, states) * self._episodic.observe(observations, visits)
        if self._normalize:
            self._stats.update(products)
            products = products / np.sqrt(self._stats.variance)
        rewards: Array = self.scale * products
        return rewards

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return B(s) of the global bonus times that of the episodic one at the beginning of an episode."""
        return self._global.novelty(observations, states) * self._episodic.novelty(observations, states)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "stats": self._stats.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._stats.load_state_dict(state["stats"])
