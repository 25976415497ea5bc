"""Interface of a bonus, as the training loop uses it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from torch import nn

from cfn.bonuses.visits import Visits
from cfn.nn.device import Measured
from cfn.types import Array, Metrics, State


class Bonus(ABC):
    """Gives intrinsic rewards (lambda * B(s) of Eq. 1) for batches of visited states.

    The loop offers `observation_space`, `seed`, `device` and more (`config.OFFERED`); a constructor receives those that
    it names. Its other arguments are the keys of the bonus's config: their defaults are the paper's values, and their
    annotations are the schema.

    The true states serve the oracle and reports. The rewards of any other bonus must not depend on them.

    Attributes:
        kind: What B depends on: a `state` and all visits of the run; a `transition`, that is, action and next
            observation too; an `episode`, of which the bonus remembers only the visits so far; or the bonuses that it
            is a `combination` of. Combinations refuse parts of the wrong kind.
        update_period: Environment steps per call of `update`.
        full_bytes: Size of the full replay buffer, in bytes.
        counts_actions: Whether the bonus counts state-action pairs; each true state that it is asked about then ends
            with the action.
    """

    kind: ClassVar[Literal["state", "transition", "episode", "combination"]] = "state"
    update_period: int = 1
    full_bytes: int = 0
    counts_actions: bool = False

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Trained networks; the key `bf16` applies to them."""
        return ()

    @abstractmethod
    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Count one visit to each observation, and return the intrinsic rewards of these visits.

        Args:
            observations: Visited observations s_t, one row per environment.
            visits: Context of the visits: true states, actions, next observations, episode boundaries.
        """

    @abstractmethod
    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return B(s) without scale and normalisation, to compare with 1 / sqrt(N(s)); the bonus does not change."""

    def report(self, states: Sequence[State], counts: Array) -> Metrics:
        """Return further metrics of an evaluation, such as `bonus/floor_mse` of the coin-flip bonus.

        Args:
            states: All true states visited so far.
            counts: Number of visits to each.
        """
        return {}

    def compile(self) -> None:
        """Compile the update (the key `compile`), with `cfn.nn.compiling.compiled`; by default, nothing is compiled."""

    def update(self) -> Measured:
        """Take one learning step, and return metrics to log, such as `bonus/loss`."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return the bonus's state, with the parts that only learning needs (a replay buffer) under `memory`."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state; its `memory` may be missing, to compute novelty without learning."""
