"""Base class of bonuses that are made of other bonuses, and the check of their parts."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from torch import nn

from cfn.bonuses.base import Bonus
from cfn.errors import BadValueError
from cfn.nn.device import Measured

KINDS = {
    "state": "is paid for a state",
    "transition": "is paid for a transition",
    "episode": "remembers one episode",
    "combination": "is itself made of bonuses",
}
"""Description of each kind of bonus in error messages."""


class Combination(Bonus):
    """Updates, saves and loads the bonuses that it is made of.

    Args:
        parts: The bonuses by name.
    """

    kind: ClassVar[Literal["combination"]] = "combination"

    def __init__(self, parts: Mapping[str, Bonus]) -> None:
        self.parts = dict(parts)
        self.update_period = math.gcd(*(part.update_period for part in parts.values()))
        self.full_bytes = sum(part.full_bytes for part in parts.values())
        self._updates = 0

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Trained networks of all parts."""
        return tuple(net for part in self.parts.values() for net in part.networks)

    def compile(self) -> None:
        """Compile the updates of all parts."""
        for part in self.parts.values():
            part.compile()

    def update(self) -> Measured:
        """Update each part at its own `update_period`; metrics of several parts have the part's name as a prefix."""
        self._updates += 1
        step = self._updates * self.update_period
        metrics: dict[str, Any] = {}
        for name, part in self.parts.items():
            if step % part.update_period == 0:
                prefix = f"{name}_" if len(self.parts) > 1 else ""
                metrics |= {key.replace("bonus/", f"bonus/{prefix}", 1): value for key, value in part.update().items()}
        return metrics

    def state_dict(self) -> dict[str, Any]:
        states = {name: part.state_dict() for name, part in self.parts.items()}
        memories = {name: state.pop("memory") for name, state in states.items() if "memory" in state}
        return {"parts": states, "updates": self._updates, "memory": memories}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, part in self.parts.items():
            own = state["parts"][name]
            memories = state.get("memory", {})
            part.load_state_dict({**own, "memory": memories[name]} if name in memories else own)
        self._updates = state["updates"]


def require_kind(key: str, part: Bonus, kinds: tuple[str, ...], needed: str) -> None:
    """Raise `BadValueError` unless a part is of one of these kinds.

    Args:
        key: Key of the part.
        part: The part.
        kinds: Kinds that are accepted.
        needed: Requirement, for the message.
    """
    if part.counts_actions:
        raise BadValueError(
            key, f"{type(part).__name__} counts state-action pairs, but states are needed here: of=state"
        )
    if part.kind not in kinds:
        raise BadValueError(key, f"{type(part).__name__} {KINDS[part.kind]}, but {needed}")
