"""Network parts that agents and bonuses share, and the conversion of observations to tensors."""

import math
from collections.abc import Sequence
from itertools import pairwise

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from cfn.errors import BadInputError
from cfn.nn.device import send
from cfn.nn.images import channels_first
from cfn.types import Array

SLOPE = 0.2
"""Slope of the leaky ReLUs in the networks of bonuses."""
CHANNELS = (32, 64, 64)
"""Channels of the three convolutions."""
HIDDEN = (400, 300)
"""Sizes of the hidden layers in the bonuses' networks for vectors."""


class SameConv2d(nn.Conv2d):
    """Convolution with "same" padding: the output size is the input size divided by the stride, rounded up.

    If the padding is odd, the extra pixel is added on the right and at the bottom, as in the published runs.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Pad and convolve; symmetric padding is left to the convolution, which saves a copy of the batch."""
        (_, _, height, width), (tall, wide), (down, across) = input.shape, self.kernel_size, self.stride
        rows = max((-(-height // down) - 1) * down + tall - height, 0)
        columns = max((-(-width // across) - 1) * across + wide - width, 0)
        if rows % 2 or columns % 2:
            left, top = columns // 2, rows // 2
            input = functional.pad(input, [left, columns - left, top, rows - top])
            rows = columns = 0
        return torch.conv2d(input, self.weight, self.bias, self.stride, (rows // 2, columns // 2))


class Chain(nn.Sequential):
    """Layers in a row, called without PyTorch's look for hooks, which takes as long as a small layer."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layers."""
        for layer in self._modules.values():
            input = layer.forward(input)
        return input


class FlattenPixels(nn.Module):
    """Flattens images pixel by pixel, the memory order of `channels_last`, so without a copy."""

    def forward(self, images: Tensor) -> Tensor:
        """Flatten (batch, channels, height, width) to (batch, height * width * channels)."""
        return images.permute(0, 2, 3, 1).flatten(1)


def image_shape(space: gym.Space[object]) -> tuple[int, int, int] | None:
    """Return (channels, height, width) of a space of images (uint8, height x width [x channels]); None for others."""
    if not isinstance(space, gym.spaces.Box) or space.dtype != np.uint8 or len(space.shape) not in (2, 3):
        return None
    if channels_first(space.shape):
        raise BadInputError(
            f"observations of {space} have their channels first, but images are read as height x width x channels: "
            "transpose them before the bonus sees them"
        )
    height, width, *channels = space.shape
    return (channels or [1])[0], height, width


def vector_size(space: gym.Space[object]) -> int | None:
    """Return the length of a vector space; None for other spaces."""
    is_vector = isinstance(space, gym.spaces.Box) and space.dtype != np.uint8 and len(space.shape) == 1
    return space.shape[0] if is_vector and space.shape else None


def unsupported(space: gym.Space[object]) -> BadInputError:
    """Return the error for observations that no network accepts."""
    if isinstance(space, gym.spaces.Dict):
        names = ", ".join(space.spaces)
        return BadInputError(
            f"observations have the entries {names}: choose one, with observation_space[name] for the bonus and "
            "key=name for a wrapper"
        )
    return BadInputError(
        f"observations of {space} are neither images (uint8, height x width) nor vectors (floats): "
        "wrap the environment to convert them"
    )


def to_tensor(observations: Array, device: torch.device) -> Tensor:
    """Convert a batch of observations to network input: bytes to [0, 1], channels before height and width."""
    return to_input(send_array(observations, device))


def send_array(array: Array, device: torch.device) -> Tensor:
    """Copy an array to the device."""
    return send(torch.from_numpy(np.ascontiguousarray(array)), device)


def to_input(tensor: Tensor) -> Tensor:
    """Convert observations on the device to network input: bytes to [0, 1], channels before height and width."""
    if tensor.ndim == 2:
        return tensor.float()
    images = tensor.unsqueeze(1) if tensor.ndim == 3 else tensor.permute(0, 3, 1, 2)
    floats = images.to(torch.float32, memory_format=torch.channels_last)
    return floats / 255 if tensor.dtype == torch.uint8 else floats


def convolutions(
    shape: tuple[int, int, int], channels: Sequence[int] = CHANNELS, slope: float = SLOPE
) -> tuple[Chain, int]:
    """Return the three convolutions of all image networks, and the number of their outputs (84x84: 7,744)."""
    inputs, height, width = shape
    first, second, third = channels
    net = Chain(
        SameConv2d(inputs, first, 8, stride=4),
        nn.LeakyReLU(slope, inplace=True),
        SameConv2d(first, second, 4, stride=2),
        nn.LeakyReLU(slope, inplace=True),
        SameConv2d(second, third, 3),
        nn.LeakyReLU(slope, inplace=True),
        FlattenPixels(),
    )
    return net, third * math.ceil(math.ceil(height / 4) / 2) * math.ceil(math.ceil(width / 4) / 2)


def perceptron(*sizes: int, slope: float = SLOPE, linear: type[nn.Linear] = nn.Linear) -> Chain:
    """Return linear layers with leaky ReLUs (slope 0: ReLUs) between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [linear(inputs, outputs), nn.LeakyReLU(slope, inplace=True)]
    return Chain(*layers[:-1])


def orthogonal(net: nn.Module) -> nn.Module:
    """Initialise all weights orthogonally with gain sqrt(2) and all biases with zero; return the network."""
    for parameter in net.parameters():
        if parameter.ndim > 1:
            nn.init.orthogonal_(parameter, math.sqrt(2))
        else:
            nn.init.zeros_(parameter)
    return net
