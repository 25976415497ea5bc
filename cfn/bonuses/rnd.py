"""Random Network Distillation (Burda et al. 2018), as the paper compares with it.

It follows the published runs of Taiga et al. (2020), and so departs from the original in three ways: each environment
step takes one gradient step on the current observation alone, not minibatches of a rollout; the error is normalised
by its running mean and *variance*, not by the standard deviation of returns; intrinsic and extrinsic rewards are
added and share one value function.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from cfn import nets
from cfn.bonuses.base import Bonus
from cfn.device import Measured, number
from cfn.moments import RunningMoments
from cfn.states import load_optimizer
from cfn.types import Array, NonNegativeFloat, PositiveFloat, State

FEATURES = 512
CLIP = 5.0
ADAM_EPSILON = 1e-5


class RNDBonus(Bonus):
    """The error of a network that imitates another, frozen and random one, on observations like those it has seen.

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        seed: Of the weights.
        device: Where the networks are.
        scale: lambda of Eq. 1.
        lr: Learning rate of Adam.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        scale: NonNegativeFloat = 1e-4,
        lr: PositiveFloat = 1e-4,
    ) -> None:
        self.scale = scale
        self._device = torch.device(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            target, predictor = _networks(observation_space)
        self._target, self._predictor = target.to(self._device), predictor.to(self._device)
        self._optimizer = torch.optim.Adam(self._predictor.parameters(), lr, eps=ADAM_EPSILON, fused=True)
        self._inputs = RunningMoments(observation_space.shape or ())
        self._errors = RunningMoments()
        self._pending: deque[Array] = deque()

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """The one that imitates; the other is the measure, and stays as it is."""
        return (self._predictor,)

    def observe(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """The normalised errors; the observations are learned from in the updates that follow."""
        self._inputs.update(_floats(observations))
        self._pending.extend(observations)
        errors = self.novelty(observations)
        self._errors.update(errors)
        rewards: Array = self.scale * (errors - self._errors.mean) / self._errors.variance
        return rewards

    @torch.inference_mode()
    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """The mean squared error over the target's outputs: not a count, and on no scale of its own."""
        errors: Array = self._error(observations).cpu().numpy()
        return errors

    def update(self) -> Measured:
        """One gradient step, on the oldest observation that has not been learned from."""
        if not self._pending:
            return {}
        loss = self._error(self._pending.popleft()[None]).mean()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        return {"bonus/loss": number(loss)}

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimiser, moments, and what is still to be learned from."""
        return {
            "target": self._target.state_dict(),
            "predictor": self._predictor.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "inputs": self._inputs.state_dict(),
            "errors": self._errors.state_dict(),
            "pending": list(self._pending),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over all of it."""
        self._target.load_state_dict(state["target"])
        self._predictor.load_state_dict(state["predictor"])
        load_optimizer(self._optimizer, state["optimizer"])
        self._inputs.load_state_dict(state["inputs"])
        self._errors.load_state_dict(state["errors"])
        self._pending = deque(state["pending"])

    def _error(self, observations: Array) -> Tensor:
        moments = self._inputs
        whitened = (_floats(observations) - moments.mean) / np.sqrt(moments.variance + 1e-8)
        inputs = nets.to_tensor(np.clip(whitened, -CLIP, CLIP).astype(np.float32), self._device)
        with torch.no_grad():
            target = self._target(inputs)
        error: Tensor = (self._predictor(inputs) - target).square().mean(dim=1)
        return error


def _floats(observations: Array) -> Array:
    floats: Array = observations / 255.0 if observations.dtype == np.uint8 else observations
    return floats


def _networks(space: gym.Space[Any]) -> tuple[nn.Module, nn.Module]:
    """The target and the predictor, which has two layers more."""
    if shape := nets.image_shape(space):
        (target, size), (predictor, _) = nets.convolutions(shape), nets.convolutions(shape)
        head = (nn.Linear(size, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, FEATURES))
        pair = nn.Sequential(target, nn.Linear(size, FEATURES)), nn.Sequential(predictor, *head)
    elif length := nets.vector_size(space):
        pair = nets.perceptron(length, 400, FEATURES), nets.perceptron(length, 400, 300, FEATURES)
    else:
        raise nets.refuse(space)
    return nets.orthogonal(pair[0]), nets.orthogonal(pair[1])
