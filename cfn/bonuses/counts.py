"""The oracle: the count-based bonus, from true states, which the other bonuses estimate from observations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cfn.bonuses.base import Bonus
from cfn.bonuses.visits import Visits
from cfn.errors import BadInputError
from cfn.types import Array, NonNegativeFloat, State


class CountBonus(Bonus):
    """scale / sqrt(N(s)), the tabular bonus of count-based exploration (Section 2.2); N(s) includes the current visit.

    Args:
        scale: Weight of the bonus in the reward (lambda of Eq. 1).
    """

    def __init__(self, scale: NonNegativeFloat = 0.01) -> None:
        self.scale = scale
        self._counts: dict[State, int] = {}

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Count the visits, and return their scaled bonuses."""
        states = self._required(visits.states if visits is not None else None)
        for state in states:
            self._counts[state] = self._counts.get(state, 0) + 1
        return self.scale * self.novelty(observations, states)

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return 1 / sqrt(N(s)); a state without visits counts as visited once, as the paper initialises it."""
        del observations
        return np.array([max(self._counts.get(state, 0), 1) for state in self._required(states)]) ** -0.5

    def state_dict(self) -> dict[str, Any]:
        return {"states": np.array(list(self._counts)), "counts": np.array(list(self._counts.values()))}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._counts = dict(zip(map(tuple, state["states"].tolist()), state["counts"].tolist(), strict=True))

    @staticmethod
    def _required(states: Sequence[State] | None) -> Sequence[State]:
        if states is None:
            raise BadInputError(
                "bonus=count counts true states, but this environment reports none in info['state']: "
                "choose another bonus, or with env=gym set env.bin (for example to 0.1) to bin observations into states"
            )
        return states
