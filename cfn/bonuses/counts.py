"""The oracle: the bonus that the others estimate, from true states they do not see."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cfn.bonuses.base import Bonus
from cfn.errors import UsageError
from cfn.types import Array, NonNegativeFloat, State


class CountBonus(Bonus):
    """scale / sqrt(N(s)), the tabular bonus of count-based exploration (Section 2.2), with the visit itself counted.

    Args:
        scale: lambda of Eq. 1.
    """

    def __init__(self, scale: NonNegativeFloat = 0.01) -> None:
        self.scale = scale
        self._counts: dict[State, int] = {}

    def observe(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Count the visits."""
        states = self._known(states)
        for state in states:
            self._counts[state] = self._counts.get(state, 0) + 1
        return self.scale * self.novelty(observations, states)

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """1 / sqrt(N(s)); a state never visited is as novel as one visited once, as the paper initialises it."""
        del observations
        return np.array([max(self._counts.get(state, 0), 1) for state in self._known(states)]) ** -0.5

    def state_dict(self) -> dict[str, Any]:
        """The states and their counts, as arrays."""
        return {"states": np.array(list(self._counts)), "counts": np.array(list(self._counts.values()))}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over states and counts."""
        self._counts = dict(zip(map(tuple, state["states"].tolist()), state["counts"].tolist(), strict=True))

    @staticmethod
    def _known(states: Sequence[State] | None) -> Sequence[State]:
        if states is None:
            raise UsageError(
                "bonus=count counts true states, and this environment reports none in info['state']: "
                "choose another bonus, or with env=gym let env.bin=0.1 (say) cut its observations into states"
            )
        return states
