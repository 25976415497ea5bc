"""Base class of bonuses that train networks on transitions from a replay buffer."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium as gym
import torch
from torch import Tensor

from cfn.bonuses.base import Bonus
from cfn.bonuses.inputs import ObservationCheck
from cfn.bonuses.inverse_dynamics import Actions
from cfn.bonuses.transition_memory import TransitionMemory
from cfn.bonuses.visits import Visits
from cfn.checkpoints.stateful import load_optimizer
from cfn.nn import networks
from cfn.nn.compiling import compiled
from cfn.nn.device import Measured, number
from cfn.nn.optim import Optimizer, descend
from cfn.replay.frames import FrameStore
from cfn.types import Array

MAX_GRADIENT = 40.0
"""Largest norm of a gradient, in the publications that clip it."""


class TransitionBonus(Bonus):
    """Stores transitions in a replay buffer, and takes gradient steps on the loss of sampled batches.

    A subclass sets `_parameters` and their `_optimizer` in its constructor.

    Args:
        name: Name of the bonus, for messages.
        observation_space: Images (uint8, height x width) or vectors.
        action_space: Discrete actions or vectors.
        seed: Seed of the sampling.
        device: Device of the networks.
        frames: Frame store shared with others; None creates one for this bonus.
        steps: Upper bound on the steps of the run, if known.
        capacity: Capacity of the replay buffer, in transitions.
        batch_size: Transitions per update.
        min_size: Transitions before learning begins.
    """

    _optimizer: Optimizer
    _parameters: list[Tensor]
    _max_norm: ClassVar[float | None] = None  # to which gradients are clipped

    def __init__(
        self,
        name: str,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        seed: int,
        device: torch.device | str,
        frames: FrameStore | None,
        steps: int | None,
        capacity: int,
        batch_size: int,
        min_size: int,
    ) -> None:
        self._name, self._device, self._actions = name, torch.device(device), Actions(name, action_space)
        self._check = ObservationCheck(observation_space)
        example = self._actions.example
        self._memory = TransitionMemory(
            observation_space, example, seed, self._device, frames, steps, capacity, batch_size, min_size
        )
        self.full_bytes = self._memory.full_bytes
        self._step: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = self._learn

    @abstractmethod
    def _loss(self, states: Tensor, actions: Tensor, discounts: Tensor, next_states: Tensor) -> Tensor:
        """Return the loss of a batch: observations and actions as they are stored, and discounts (0 at terminal s')."""

    def update(self) -> Measured:
        """Take one gradient step."""
        if not self._memory.ready:
            return {}
        batch = self._memory.take()
        arrays = (batch.states, batch.actions, batch.discounts, batch.next_states)
        self._optimizer.prepare()
        loss = self._step(*map(self._sent, arrays))
        self._memory.prepare()
        return {"bonus/loss": number(loss)}

    def compile(self) -> None:
        """Compile the update."""
        self._step = compiled(self._learn, f"the update of {self._name}", self._device, self._optimizer)

    def _learn(self, states: Tensor, actions: Tensor, discounts: Tensor, next_states: Tensor) -> Tensor:
        """Take one gradient step, and return the loss."""
        loss = self._loss(states, actions, discounts, next_states)
        descend(self._optimizer, (loss, self._parameters), max_norm=self._max_norm)
        return loss.detach()

    def state_dict(self) -> dict[str, Any]:
        return {"optimizer": self._optimizer.state_dict(), "memory": self._memory.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_optimizer(self._optimizer, state["optimizer"])
        if "memory" in state:
            self._memory.load_state_dict(state["memory"])

    def _remember(self, observations: Array, visits: Visits | None) -> tuple[Array, Array]:
        """Add the transitions to the buffer; return their actions, as stored, and the next observations."""
        needed = ("actions", "next_observations", "terminated")
        actions, after, terminated = (visits or Visits()).require(self._name, *needed)
        numbers, after = self._actions.numbers(actions), self._check(after)
        self._memory.add(observations, numbers, after, terminated)
        return numbers, after

    def _inputs(self, observations: Array) -> Tensor:
        return networks.to_tensor(observations, self._device)

    def _sent(self, array: Array) -> Tensor:
        return networks.send_array(array, self._device)
