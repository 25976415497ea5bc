"""No bonus: the baseline."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cfn.bonuses.base import Bonus
from cfn.types import Array, State


class NoBonus(Bonus):
    """Every state is worth nothing beyond its reward."""

    def observe(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Zeros."""
        return self.novelty(observations, states)

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Zeros."""
        del states
        return np.zeros(len(observations))

    def state_dict(self) -> dict[str, Any]:
        """Nothing is all that it knows."""
        return {}
