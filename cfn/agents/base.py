"""Interface of an agent, as the training loop uses it."""

from abc import ABC, abstractmethod
from typing import Any

from torch import nn

from cfn.nn.device import Measured
from cfn.types import Array


class Agent(ABC):
    """Acts on batches of observations and learns from the transitions that follow.

    The loop offers `observation_space`, `action_space`, `seed`, `device` and more (`config.OFFERED`); a constructor
    receives those that it names. Its other arguments are the keys of the agent's config: their defaults are the
    paper's values, and their annotations are the schema.

    Attributes:
        update_period: Environment steps per call of `update`.
        full_bytes: Size of the full replay buffer, in bytes.
    """

    update_period: int = 1
    full_bytes: int = 0

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Trained networks and their target networks; the key `bf16` applies to them."""
        return ()

    @abstractmethod
    def act(self, observations: Array, explore: bool = True) -> Array:
        """Choose an action for each observation; with `explore=False` (evaluation), training is not affected."""

    def observe(
        self,
        observations: Array,
        actions: Array,
        rewards: Array,
        next_observations: Array,
        terminated: Array,
        truncated: Array,
    ) -> None:
        """Store one transition per environment; `rewards` are the rewards to learn from."""

    def cut(self, which: Array) -> None:
        """End the current episodes of these environments (True), as if the previous step had truncated them.

        The loop calls this when a run is resumed and an environment cannot be restored to its saved position.
        """

    def compile(self) -> None:
        """Compile the update (the key `compile`), with `cfn.nn.compiling.compiled`; by default, nothing is compiled."""

    def update(self) -> Measured:
        """Take one learning step, and return metrics to log, such as `agent/loss`."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return the agent's state, with the parts that only learning needs (a replay buffer) under `memory`."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state; its `memory` may be missing, for an agent that only acts."""
