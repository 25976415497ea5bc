"""What the loop asks of an agent."""

from abc import ABC, abstractmethod
from typing import Any

from cfn.types import Array, Metrics


class Agent(ABC):
    """Acts on batches of observations and learns from what came of it.

    A constructor takes `observation_space`, `action_space` and `seed`, and then its own keys with the paper's
    defaults; their annotations are the schema of the agent's config group.

    Attributes:
        update_period: Environment steps per call of `update`.
    """

    update_period: int = 1

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

    def update(self) -> Metrics:
        """Learn for one step. Returns what is worth logging, such as `agent/loss`."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """All that the agent would need to go on as if nothing had happened."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
