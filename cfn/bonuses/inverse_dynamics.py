"""Features from inverse dynamics (Pathak et al., 2017): trained to predict the action between two states.

Such features ignore what the agent cannot influence. The networks are the published ones: for images, four 3x3
convolutions with stride 2, 32 channels and ELUs, on at most 42 x 42 pixels; the head has 256 hidden units. For vectors,
where nothing is published, the hidden layers are those of the other bonuses.
"""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from cfn.bonuses.state_actions import action_numbers
from cfn.errors import BadInputError
from cfn.nn import networks
from cfn.types import Array

SIDE = 42
"""Largest height and width of images, in pixels; larger ones are averaged down."""
CHANNELS = 32
"""Channels of the convolutions."""
HEAD = 256
"""Hidden units of the heads."""
SMALL = 0.01
"""Factor on the initial weights of a head's last layer, so that all actions begin equally likely."""


class Actions:
    """Converts actions to network input: discrete ones to one-hot vectors; continuous ones stay as they are.

    Args:
        bonus: Name of the bonus, for the message.
        space: Action space.
    """

    def __init__(self, bonus: str, space: gym.Space[Any]) -> None:
        self._first = 0
        if isinstance(space, gym.spaces.Discrete):
            self.size, self._first, self._discrete = int(space.n), int(space.start), True
        elif isinstance(space, gym.spaces.Box) and len(space.shape) == 1:
            self.size, self._discrete = space.shape[0], False
        else:
            raise BadInputError(
                f"bonus={bonus} learns from actions, which must be discrete or vectors, not {space}: "
                "use a bonus that learns from observations alone, such as cfn or rnd"
            )
        self.example: Array = np.zeros((), np.int64) if self._discrete else np.zeros(self.size, np.float32)

    def numbers(self, actions: Array) -> Array:
        """Return actions in the form in which they are stored; discrete ones begin with 0."""
        if self._discrete:
            return action_numbers(actions, self._first, self.size)
        floats: Array = actions.astype(self.example.dtype)
        return floats

    def encoded(self, numbers: Tensor) -> Tensor:
        """Return one row of `size` numbers per action."""
        return functional.one_hot(numbers, self.size).float() if self._discrete else numbers

    def loss(self, outputs: Tensor, numbers: Tensor) -> Tensor:
        """Return the mean loss of predicted actions: cross-entropy, or half the squared distance if continuous."""
        if self._discrete:
            return functional.cross_entropy(outputs, numbers)
        return (outputs - numbers).square().sum(dim=1).mean() / 2


class InverseDynamics(nn.Module):
    """Features phi of observations, and a head that predicts the action between two of them.

    Args:
        space: Images (uint8, height x width) or vectors.
        actions: Number of outputs of the head.
    """

    def __init__(self, space: gym.Space[Any], actions: int) -> None:
        super().__init__()
        self.features, self.size = feature_network(space)
        self.head = head(2 * self.size, actions)

    def forward(self, before: Tensor, after: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return phi(s), phi(s') and the predicted action."""
        phi, phi_after = self.features(before), self.features(after)
        return phi, phi_after, self.head(torch.cat([phi, phi_after], dim=1))


def feature_network(space: gym.Space[Any]) -> tuple[nn.Module, int]:
    """Return the network phi and the number of its outputs (288 for images of 42 x 42 pixels and more)."""
    if shape := networks.image_shape(space):
        channels, height, width = shape
        height, width = min(height, SIDE), min(width, SIDE)
        layers: list[nn.Module] = [nn.AdaptiveAvgPool2d((height, width))] if (height, width) != shape[1:] else []
        for _ in range(4):
            layers += [networks.SameConv2d(channels, CHANNELS, 3, stride=2), nn.ELU()]
            channels, height, width = CHANNELS, -(-height // 2), -(-width // 2)
        return nn.Sequential(*layers, networks.FlattenPixels()), channels * height * width
    if length := networks.vector_size(space):
        return nn.Sequential(networks.perceptron(length, *networks.HIDDEN, slope=0), nn.ReLU()), networks.HIDDEN[-1]
    raise networks.unsupported(space)


def head(inputs: int, outputs: int) -> nn.Sequential:
    """Return a network with one hidden layer, whose first outputs are near 0."""
    net = networks.perceptron(inputs, HEAD, outputs, slope=0)
    with torch.no_grad():
        for parameter in net[-1].parameters():
            parameter.mul_(SMALL)
    return net
