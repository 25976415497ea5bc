"""What the loop, and anyone else's loop, asks of a bonus."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import nn

from cfn.device import Measured
from cfn.types import Array, State


class Bonus(ABC):
    """Turns visited states into intrinsic rewards (lambda * B(s) of Eq. 1).

    The loop offers a constructor `observation_space`, `seed`, `device` and more (`config.OFFERED`), of which it takes
    what it names; its other arguments are the keys of the bonus's config, with the paper's defaults, and their
    annotations the schema. Observations come in batches. The true states are there for the oracle alone; a bonus that
    is to work in the world must not look at them.

    Attributes:
        update_period: Environment steps per call of `update`.
        flipped: The coin vectors of the visits last observed, for a bonus that flips coins: with them the error that
            the coins themselves leave (the floor) can be told from the network's.
        full_bytes: What its replay buffer can grow to.
    """

    update_period: int = 1
    flipped: Array | None = None
    full_bytes: int = 0

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Those that learn: what the keys `compile` and `bf16` are for."""
        return ()

    @abstractmethod
    def observe(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Count one visit to each state, and return the intrinsic rewards of these visits."""

    @abstractmethod
    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """B(s), without scale or normalisation: what plots compare with 1 / sqrt(N(s)). Changes nothing."""

    def update(self) -> Measured:
        """Learn for one step. Returns what is worth logging, such as `bonus/loss`."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """All that the bonus would need to go on as if nothing had happened.

        What only learning needs, such as a replay buffer, is under the key `memory`, and may be missing when loaded.
        """
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
