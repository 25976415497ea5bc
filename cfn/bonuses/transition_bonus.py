"""Base class of bonuses that train networks on transitions from a replay buffer."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor, nn

from cfn.bonuses.base import Bonus
from cfn.bonuses.inputs import ObservationCheck
from cfn.bonuses.inverse_dynamics import Actions
from cfn.bonuses.transition_memory import TransitionMemory
from cfn.bonuses.visits import Visits
from cfn.checkpoints.stateful import load_optimizer
from cfn.nn import networks
from cfn.nn.device import Measured, number, send
from cfn.replay.frames import FrameStore
from cfn.replay.transitions import TransitionBatch
from cfn.types import Array

MAX_GRADIENT = 40.0
"""Largest norm of a gradient, in the publications that clip it."""


class TransitionBonus(Bonus):
    """Stores transitions in a replay buffer, and takes gradient steps on the loss of sampled batches.

    A subclass sets `_optimizer`, and the parameters whose gradient is clipped, in its constructor.

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

    _optimizer: torch.optim.Optimizer
    _clipped: Sequence[nn.Parameter] = ()

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

    @abstractmethod
    def _loss(self, batch: TransitionBatch) -> Tensor:
        """Return the loss of a batch."""

    def update(self) -> Measured:
        """Take one gradient step."""
        if not self._memory.ready:
            return {}
        loss = self._loss(self._memory.take())
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self._clipped:
            nn.utils.clip_grad_norm_(self._clipped, MAX_GRADIENT)
        self._optimizer.step()
        self._memory.prepare()
        return {"bonus/loss": number(loss)}

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
        return send(torch.from_numpy(array), self._device)
