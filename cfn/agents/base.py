"""What the loop asks of an agent."""

from abc import ABC, abstractmethod
from typing import Any

from torch import nn

from cfn.device import Measured
from cfn.types import Array


class Agent(ABC):
    """Acts on batches of observations and learns from what came of it.

    The loop offers a constructor `observation_space`, `action_space`, `seed`, `device` and more (`config.OFFERED`), of
    which it takes what it names; its other arguments are the keys of the agent's config, with the paper's defaults,
    and their annotations the schema.

    Attributes:
        update_period: Environment steps per call of `update`.
        full_bytes: What its replay buffer can grow to.
    """

    update_period: int = 1
    full_bytes: int = 0

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Those that learn, and those that follow them: what the keys `compile` and `bf16` are for."""
        return ()

    @abstractmethod
    def act(self, observations: Array, explore: bool = True) -> Array:
        """Choose an action for each observation. With `explore=False`, as evaluations ask, training is not touched."""

    def observe(
        self,
        observations: Array,
        actions: Array,
        rewards: Array,
        next_observations: Array,
        terminated: Array,
        truncated: Array,
    ) -> None:
        """Take in one transition per environment, with the reward that is to be learned from."""

    def cut(self, which: Array) -> None:
        """The episodes of these environments (True) are cut off where they are, as if truncated by the step before.

        That happens when a run is resumed and an environment cannot be brought back to where it was.
        """

    def update(self) -> Measured:
        """Learn for one step. Returns what is worth logging, such as `agent/loss`."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """All that the agent would need to go on as if nothing had happened.

        What only learning needs, such as a replay buffer, is under the key `memory`, and may be missing when loaded.
        """
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
