"""No bonus: the baseline."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cfn.bonuses.base import Bonus
from cfn.bonuses.visits import Visits
from cfn.types import Array, State


class NoBonus(Bonus):
    """Gives no intrinsic rewards. This bonus has no state."""

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Return zeros."""
        return self.novelty(observations)

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return zeros."""
        del states
        return np.zeros(len(observations))

    def state_dict(self) -> dict[str, Any]:
        return {}  # defined here, so that a run knows that nothing is missing
