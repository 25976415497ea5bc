"""The networks that several methods share, and how observations enter them."""

import math
from collections.abc import Sequence
from itertools import pairwise

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from cfn.device import send
from cfn.errors import UsageError
from cfn.types import Array

SLOPE = 0.2
"""Of the leaky ReLUs in the networks of bonuses."""
CHANNELS = (32, 64, 64)
"""Channels of the convolutions, of bonuses and agents alike."""
HIDDEN = (400, 300)
"""Hidden layers of the bonuses' networks for vectors."""


class SameConv2d(nn.Conv2d):
    """A convolution whose output is the input's size divided by the stride, rounded up ("same" padding).

    Where the padding cannot be even the odd pixel goes to the right and the bottom, as in the published runs.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Pad and convolve, in one where the padding is even: a padded copy of a batch costs time."""
        padding = [
            max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
            for size, kernel, stride in zip(input.shape[2:], self.kernel_size, self.stride, strict=True)
        ]
        if any(total % 2 for total in padding):
            bottom, right = (total - total // 2 for total in padding)
            input = functional.pad(input, [padding[1] // 2, right, padding[0] // 2, bottom])
            padding = [0, 0]
        return functional.conv2d(input, self.weight, self.bias, self.stride, [total // 2 for total in padding])


class FlattenPixels(nn.Module):
    """Images to vectors, pixel by pixel: in the order that they lie in memory (`channels_last`), so without a copy."""

    def forward(self, images: Tensor) -> Tensor:
        """(batch, channels, height, width) to (batch, height * width * channels)."""
        return images.permute(0, 2, 3, 1).flatten(1)


def image_shape(space: gym.Space[object]) -> tuple[int, int, int] | None:
    """(channels, height, width) of an image space, height x width [x channels] of bytes; None for other spaces."""
    if not isinstance(space, gym.spaces.Box) or space.dtype != np.uint8 or len(space.shape) not in (2, 3):
        return None
    height, width, *channels = space.shape
    return (channels or [1])[0], height, width


def vector_size(space: gym.Space[object]) -> int | None:
    """Length of a vector space; None for other spaces."""
    is_vector = isinstance(space, gym.spaces.Box) and space.dtype != np.uint8 and len(space.shape) == 1
    return space.shape[0] if is_vector and space.shape else None


def refuse(space: gym.Space[object]) -> UsageError:
    """What to say of observations that no network here takes."""
    return UsageError(
        f"observations of {space} are neither images (uint8, height x width) nor vectors (floats): "
        "wrap the environment so that they are"
    )


def to_tensor(observations: Array, device: torch.device) -> Tensor:
    """A batch of observations as networks take it: bytes become numbers in [0, 1], channels come before pixels."""
    tensor = send(torch.from_numpy(np.ascontiguousarray(observations)), device)
    if tensor.ndim == 2:
        return tensor.float()
    images = tensor.unsqueeze(1) if tensor.ndim == 3 else tensor.permute(0, 3, 1, 2)
    floats = images.to(torch.float32, memory_format=torch.channels_last)
    return floats / 255 if tensor.dtype == torch.uint8 else floats


def convolutions(
    shape: tuple[int, int, int], channels: Sequence[int] = CHANNELS, slope: float = SLOPE
) -> tuple[nn.Sequential, int]:
    """The three convolutions of all networks for images, and how many numbers come out (84x84: 7,744)."""
    inputs, height, width = shape
    first, second, third = channels
    net = nn.Sequential(
        SameConv2d(inputs, first, 8, stride=4),
        nn.LeakyReLU(slope, inplace=True),
        SameConv2d(first, second, 4, stride=2),
        nn.LeakyReLU(slope, inplace=True),
        SameConv2d(second, third, 3),
        nn.LeakyReLU(slope, inplace=True),
        FlattenPixels(),
    )
    return net, third * math.ceil(math.ceil(height / 4) / 2) * math.ceil(math.ceil(width / 4) / 2)


def perceptron(*sizes: int, slope: float = SLOPE, linear: type[nn.Linear] = nn.Linear) -> nn.Sequential:
    """Linear layers with leaky ReLUs (slope 0: plain ones) between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [linear(inputs, outputs), nn.LeakyReLU(slope, inplace=True)]
    return nn.Sequential(*layers[:-1])


def coin_flip_net(
    space: gym.Space[object], outputs: int, channels: Sequence[int] = CHANNELS, hidden: Sequence[int] = HIDDEN
) -> nn.Module:
    """The Coin Flip Network's body, for prior and trained part alike: convolutions or hidden layers, then linear."""
    if shape := image_shape(space):
        body, size = convolutions(shape, channels)
        net = nn.Sequential(body, nn.Linear(size, outputs))
    elif length := vector_size(space):
        net = perceptron(length, *hidden, outputs)
    else:
        raise refuse(space)
    return orthogonal(net).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def orthogonal(net: nn.Module) -> nn.Module:
    """All weights orthogonal with gain sqrt(2), all biases zero."""
    for parameter in net.parameters():
        if parameter.ndim > 1:
            nn.init.orthogonal_(parameter, math.sqrt(2))
        else:
            nn.init.zeros_(parameter)
    return net
