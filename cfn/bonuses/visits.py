"""Context of a batch of visits, for bonuses that use more than the observations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cfn.errors import BadInputError
from cfn.types import Array, State


@dataclass(frozen=True, slots=True)
class Visits:
    """Describes one step of every environment; row i belongs to environment i.

    A bonus reads the fields that it needs, and asks for them with `require`. A field that the caller does not know is
    None: the training loop knows all of them, a loop of your own may leave out what its bonus does not use.

    Attributes:
        states: True states of the visited observations. They serve the oracle and reports: the rewards of any other
            bonus must not depend on them.
        actions: Actions taken in the visited observations.
        next_observations: Observations that followed; at the end of an episode, its last one.
        begins: Whether the visit is the first one of its episode.
        terminated: Whether the step ended the episode in a terminal state.
        truncated: Whether the step ended the episode for another reason, such as a time limit.
        next_states: True states of the next observations, under the same rule as `states`.
    """

    states: Sequence[State] | None = None
    actions: Array | None = None
    next_observations: Array | None = None
    begins: Array | None = None
    terminated: Array | None = None
    truncated: Array | None = None
    next_states: Sequence[State] | None = None

    @property
    def pairs(self) -> list[State] | None:
        """True states with the action taken at their end, for bonuses of state-action pairs; None without states."""
        if self.states is None or self.actions is None:
            return None
        return [(*state, int(action)) for state, action in zip(self.states, self.actions, strict=True)]

    def require(self, bonus: str, *names: str) -> list[Any]:
        """Return the values of the named fields; raise `BadInputError` if one is None.

        Args:
            bonus: Name of the bonus that needs them, for the message.
            *names: Names of fields.
        """
        if missing := [name for name in names if getattr(self, name) is None]:
            needed = " and ".join(f"`{name}`" for name in missing)
            raise BadInputError(f"bonus={bonus} needs {needed} of each visit: observe(observations, Visits(...))")
        return [getattr(self, name) for name in names]
