"""Random Network Distillation (Burda et al., 2018), a baseline of the paper.

It follows the published runs, which use the implementation of Taiga et al. (2020). Departures from Burda et al., for
both values of `inputs`: each environment step takes one gradient step on the current observation alone, instead of
minibatches of a rollout; the error is normalised by its running mean and *variance*, instead of the standard deviation
of returns; intrinsic and extrinsic rewards are added and share one value function.

`inputs: standard` normalises inputs as Burda et al. do: by the running mean and standard deviation of the observations,
clipped to [-5, 5]. The statistics include the current observation, and start without observations of a random policy.

`inputs: published` normalises them as the published runs do: the values are raw (0 to 255 for images) and divided by
the running variance, not its root; mean and variance are those of the inputs, after normalisation and clipping, instead
of those of the observations. Entries of standard deviation s become inputs of standard deviation s^(1/3), not 1, and
bright pixels that never change become +5, not 0. Running statistics follow the recurrence of `PublishedStats`, those
of the error too: the first error is its own mean and pays 0.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from cfn.bonuses.base import Bonus
from cfn.bonuses.inputs import ObservationCheck
from cfn.bonuses.visits import Visits
from cfn.bonuses.whitening import CLIP, as_floats, whitened
from cfn.checkpoints.stateful import load_optimizer
from cfn.nn import networks
from cfn.nn.compiling import compiled
from cfn.nn.device import Measured, number
from cfn.nn.optim import Adam, descend
from cfn.nn.running_stats import PublishedStats, RunningStats
from cfn.types import Array, NonNegativeFloat, PositiveFloat, State

FEATURES = 512
"""Number of outputs of both networks."""
ADAM_EPSILON = 1e-5
"""Adam's epsilon."""


class RNDBonus(Bonus):
    """Error of a predictor network that is trained to match a frozen random target network on visited observations.

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        seed: Seed of the weights.
        device: Device of the networks.
        scale: Weight of the bonus in the reward (lambda of Eq. 1).
        lr: Learning rate of Adam.
        inputs: Normalisation of the networks' inputs: `standard` (by mean and standard deviation, Burda et al.) or
            `published` (by the variance of the normalised inputs, as the published runs do).
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        scale: NonNegativeFloat = 1e-4,
        lr: PositiveFloat = 1e-4,
        inputs: Literal["published", "standard"] = "standard",
    ) -> None:
        self.scale = scale
        self._published = inputs == "published"
        self._device, self._check = torch.device(device), ObservationCheck(observation_space)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            target, predictor = (make(observation_space) for make in (target_network, predictor_network))
            networks.orthogonal(target)
            networks.orthogonal(predictor)
        self._target, self._predictor = target.to(self._device), predictor.to(self._device)
        self._parameters = list(self._predictor.parameters())
        self._optimizer = Adam(self._parameters, lr, ADAM_EPSILON)
        self._step = self._learn
        stats = PublishedStats if self._published else RunningStats
        self._input_stats, self._error_stats = stats(observation_space.shape or ()), stats()
        self._pending: deque[Array] = deque()  # published: inputs; standard: observations, normalised when used

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Predictor. The target is excluded: its outputs must not depend on `bf16`."""
        return (self._predictor,)

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Return the scaled normalised errors; the next updates learn from the observations."""
        observations = self._check(observations)
        if self._published:
            inputs = np.stack([self._counted_input(observation) for observation in observations])
            self._pending.extend(inputs)
        else:
            self._input_stats.update(as_floats(observations))
            self._pending.extend(observations)
            inputs = self._inputs(observations)
        with torch.inference_mode():
            errors = self._error(networks.send_array(inputs, self._device)).cpu().numpy()
        self._error_stats.update(errors)
        rewards: Array = self.scale * (errors - self._error_stats.mean) / self._error_stats.variance
        return rewards

    @torch.inference_mode()
    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return the mean squared error over the target's outputs, whose scale is arbitrary: it is no count."""
        inputs = networks.send_array(self._inputs(self._check(observations)), self._device)
        errors: Array = self._error(inputs).cpu().numpy()
        return errors

    def update(self) -> Measured:
        """Take one gradient step on the oldest observation that has not been used yet."""
        if not self._pending:
            return {}
        oldest = self._pending.popleft()[None]
        inputs = oldest if self._published else self._inputs(oldest)
        self._optimizer.prepare()
        return {"bonus/loss": number(self._step(networks.send_array(inputs, self._device)))}

    def compile(self) -> None:
        """Compile the update."""
        self._step = compiled(self._learn, "RND's update", self._device, self._optimizer)

    def _learn(self, inputs: Tensor) -> Tensor:
        """Take one gradient step, and return the loss."""
        loss = self._error(inputs).mean()
        descend(self._optimizer, (loss, self._parameters))
        return loss.detach()

    def state_dict(self) -> dict[str, Any]:
        return {
            "target": self._target.state_dict(),
            "predictor": self._predictor.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "inputs": self._input_stats.state_dict(),
            "errors": self._error_stats.state_dict(),
            "pending": list(self._pending),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._target.load_state_dict(state["target"])
        self._predictor.load_state_dict(state["predictor"])
        load_optimizer(self._optimizer, state["optimizer"])
        self._input_stats.load_state_dict(state["inputs"])
        self._error_stats.load_state_dict(state["errors"])
        self._pending = deque(state["pending"])

    def _counted_input(self, observation: Array) -> Array:
        """Return the input of an observation as the published runs do: normalised first, counted afterwards."""
        one = self._inputs(observation[None])
        self._input_stats.update(one)
        inputs: Array = one[0]
        return inputs

    def _inputs(self, observations: Array) -> Array:
        if not self._published:
            return whitened(observations, self._input_stats)
        normalized = (observations - self._input_stats.mean) / self._input_stats.variance
        inputs: Array = np.clip(normalized, -CLIP, CLIP).astype(np.float32)
        return inputs

    def _error(self, inputs: Tensor) -> Tensor:
        tensor = networks.to_input(inputs)
        with torch.no_grad():
            target = self._target(tensor)
        error: Tensor = (self._predictor(tensor) - target).square().mean(dim=1)
        return error


def target_network(space: gym.Space[Any], outputs: int = FEATURES) -> nn.Module:
    """Return a target network, without its initial weights."""
    if shape := networks.image_shape(space):
        body, size = networks.convolutions(shape)
        return networks.Chain(body, nn.Linear(size, outputs))
    if length := networks.vector_size(space):
        return networks.perceptron(length, 400, outputs)
    raise networks.unsupported(space)


def predictor_network(space: gym.Space[Any], outputs: int = FEATURES) -> nn.Module:
    """Return a predictor network, which has more layers than a target, without its initial weights."""
    if shape := networks.image_shape(space):
        body, size = networks.convolutions(shape)
        head = (nn.Linear(size, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, outputs))
        return networks.Chain(body, *head)
    if length := networks.vector_size(space):
        return networks.perceptron(length, 400, 300, outputs)
    raise networks.unsupported(space)
