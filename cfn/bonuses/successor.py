"""Successor counts (Machado et al., 2020): 1 / |psi(s)|, with psi the successor representation of a state.

psi(s) is the discounted sum of the features of the states that follow. While it is learned from 0, its norm grows with
the visits to s, so 1 / |psi| falls as a count would. In a table with features of norm 1 the norm is bounded by
1 / (1 - gamma); it depends on the visits to neighbours, too, so it is not a count of s alone.

Features phi are learned by predicting the next observation from phi(s) and the action, psi by temporal differences
towards phi(s) / |phi(s)| + gamma psi(s'), both s' and phi from a target network.

Departures: the target has phi(s) as in the paper's text (the published code has phi(s')); the networks belong to the
bonus and share nothing with the agent, so there are no weights between their losses and that of the agent, no mixed
Monte Carlo returns, and the body is that of the other bonuses; images are predicted at 42 x 42 pixels. PyTorch's
centred RMSProp has its epsilon outside of the root.
"""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import gymnasium as gym
import torch
from torch import Tensor, nn
from torch.nn import functional

from cfn.bonuses.inverse_dynamics import SIDE
from cfn.bonuses.transition_bonus import TransitionBonus
from cfn.bonuses.visits import Visits
from cfn.nn import networks
from cfn.nn.device import Measured
from cfn.nn.optim import CentredRMSProp
from cfn.replay.frames import FrameStore
from cfn.types import Array, NonNegative, NonNegativeFloat, Positive, PositiveFloat, Probability, State

SMALLEST_NORM = 1e-3
"""Norms of psi below this are raised to it, so that an untrained network does not pay without bound."""
DECAY, EPSILON = 0.95, 9.8e-6
"""Published settings of RMSProp."""


class SuccessorNetwork(nn.Module):
    """Features phi, successor representation psi, and a decoder that predicts the next observation.

    Args:
        space: Images (uint8, height x width) or vectors.
        actions: Number of inputs that encode an action.
        features: Number of features.
    """

    def __init__(self, space: gym.Space[Any], actions: int, features: int) -> None:
        super().__init__()
        if shape := networks.image_shape(space):
            body, size = networks.convolutions(shape)
            channels, height, width = shape
            outputs = channels * min(height, SIDE) * min(width, SIDE)
        elif length := networks.vector_size(space):
            body, size = networks.Chain(networks.perceptron(length, *networks.HIDDEN), nn.LeakyReLU()), 300
            outputs = length
        else:
            raise networks.unsupported(space)
        self.features = nn.Sequential(body, nn.Linear(size, features), nn.ReLU())
        self.successor = nn.Sequential(networks.perceptron(features, 2 * features, features, slope=0), nn.ReLU())
        self.from_features, self.from_action = nn.Linear(features, 2 * features), nn.Linear(actions, 2 * features)
        self.decoder = nn.Linear(2 * features, outputs)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Return phi and psi; the loss of psi does not train phi."""
        phi = self.features(observations)
        return phi, self.successor(phi.detach())

    def next_observation(self, phi: Tensor, actions: Tensor) -> Tensor:
        """Return the predicted next observation, flattened."""
        predicted: Tensor = self.decoder(self.from_features(phi) * self.from_action(actions))
        return predicted


class SuccessorBonus(TransitionBonus):
    """scale / |psi(s)|, with the Euclidean norm of the target network's successor representation.

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        action_space: Discrete actions or vectors.
        seed: Seed of weights and sampling.
        device: Device of the networks.
        frames: Frame store shared with others; None creates one for this bonus.
        steps: Upper bound on the steps of the run, if known.
        scale: Weight of the bonus in the reward.
        gamma: Discount of the successor representation.
        features: Number of features.
        lr: Learning rate of RMSProp.
        batch_size: Transitions per update.
        update_period: Environment steps per update.
        target_period: Environment steps between copies to the target network.
        capacity: Capacity of the replay buffer, in transitions.
        min_size: Transitions before learning begins.
    """

    kind: ClassVar[Literal["transition"]] = "transition"

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        frames: FrameStore | None = None,
        steps: int | None = None,
        scale: NonNegativeFloat = 0.025,
        gamma: Probability = 0.99,
        features: Positive = 1024,
        lr: PositiveFloat = 2.5e-4,
        batch_size: Positive = 32,
        update_period: Positive = 4,
        target_period: Positive = 40_000,
        capacity: Positive = 100_000,
        min_size: NonNegative = 1000,
    ) -> None:
        buffer = (capacity, batch_size, min_size)
        super().__init__("successor", observation_space, action_space, seed, device, frames, steps, *buffer)
        self.scale, self.update_period = scale, update_period
        self._gamma, self._target_period, self._updates = gamma, target_period, 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._net = SuccessorNetwork(observation_space, self._actions.size, features).to(self._device)
        self._target = copy.deepcopy(self._net).requires_grad_(False)
        self._parameters = list(self._net.parameters())
        self._optimizer = CentredRMSProp(self._parameters, lr, DECAY, EPSILON)

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Network and its target network."""
        return self._net, self._target

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Return the scaled bonuses, and add the transitions to the replay buffer."""
        observations = self._check(observations)
        self._remember(observations, visits)
        return self.scale * self.novelty(observations)

    @torch.inference_mode()
    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return 1 / |psi(s)|."""
        _, psi = self._target(self._inputs(self._check(observations)))
        inverse: Array = inverse_norm(psi).double().cpu().numpy()
        return inverse

    def update(self) -> Measured:
        """Take one gradient step, and copy the network to its target network when that is due."""
        metrics = super().update()
        if metrics:
            self._updates += 1
            if self._updates * self.update_period % self._target_period < self.update_period:
                self._target.load_state_dict(self._net.state_dict())
        return metrics

    def _loss(self, states: Tensor, actions: Tensor, discounts: Tensor, next_states: Tensor) -> Tensor:
        """Return the loss of the successor representation and of the prediction of next observations."""
        before, after = networks.to_input(states), networks.to_input(next_states)
        with torch.no_grad():
            (phi_target, _), (_, psi_after) = self._target(before), self._target(after)
            wanted = successor_target(phi_target, psi_after, self._gamma * discounts)
        phi, psi = self._net(before)
        predicted = self._net.next_observation(phi, self._actions.encoded(actions))
        successor = (psi - wanted).square().sum(dim=1).mean() / 2
        loss: Tensor = successor + (predicted - _to_predict(after)).square().mean()
        return loss

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "net": self._net.state_dict(),
            "target": self._target.state_dict(),
            "updates": self._updates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._net.load_state_dict(state["net"])
        self._target.load_state_dict(state["target"])
        self._updates = state["updates"]


def successor_target(phi: Tensor, psi_after: Tensor, discounts: Tensor) -> Tensor:
    """Return phi(s) / |phi(s)| + discount * psi(s'); the discount is 0 where s' is terminal."""
    return functional.normalize(phi, dim=1) + discounts[:, None] * psi_after


def inverse_norm(psi: Tensor) -> Tensor:
    """Return 1 / |psi| of each row."""
    norms: Tensor = torch.linalg.vector_norm(psi, dim=1)
    return norms.clamp(min=SMALLEST_NORM).reciprocal()


def _to_predict(observations: Tensor) -> Tensor:
    """Return observations as the decoder predicts them: flattened, images of at most 42 x 42 pixels."""
    if observations.ndim == 4:
        height, width = (min(size, SIDE) for size in observations.shape[2:])
        observations = functional.adaptive_avg_pool2d(observations, (height, width))
    return observations.flatten(1)
