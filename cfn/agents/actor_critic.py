"""Networks of SAC: a tanh-squashed Gaussian policy, and two critics computed as one."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from cfn.nn import networks

LOG_STD_RANGE = (-20.0, 2.0)
"""Bounds of the logarithm of the policy's standard deviation, before squashing."""

Init = Literal["glorot", "uniform"]
"""Initial weights: Glorot's with zero biases, or PyTorch's default (weights and biases up to 1 / sqrt(inputs))."""


class GlorotLinear(nn.Linear):
    """Linear layer with uniform weights up to sqrt(6 / (inputs + outputs)) (Glorot and Bengio, 2010), zero biases."""

    def reset_parameters(self) -> None:
        """Draw the weights, and set the biases to zero."""
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)


LAYERS: dict[Init, type[nn.Linear]] = {"glorot": GlorotLinear, "uniform": nn.Linear}
"""Linear layer by its initial weights."""


class Actor(nn.Module):
    """Policy over actions in [-1, 1]: a = tanh(u), with u Gaussian (Haarnoja et al., 2018, Appendix C).

    Args:
        inputs: Dimensions of an observation.
        actions: Dimensions of an action.
        hidden: Sizes of the hidden layers.
        init: Initial weights.
        clamp_log_std: Whether to clamp the logarithm of the standard deviation to `LOG_STD_RANGE`.
    """

    def __init__(
        self, inputs: int, actions: int, hidden: Sequence[int], init: Init = "uniform", clamp_log_std: bool = True
    ) -> None:
        super().__init__()
        self.net = networks.perceptron(inputs, *hidden, 2 * actions, slope=0.0, linear=LAYERS[init])
        self._clamp_log_std = clamp_log_std

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean of u and the logarithm of its standard deviation."""
        mean, log_std = self.net(observations).chunk(2, dim=-1)
        return mean, log_std.clamp(*LOG_STD_RANGE) if self._clamp_log_std else log_std

    def sample(self, observations: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions sampled with the given standard Gaussian noise, and their log densities."""
        mean, log_std = self(observations)
        return squashed_sample(mean, log_std, noise)


def squashed_sample(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return tanh(u) for u = mean + standard deviation * noise, and its log density."""
    u = mean + log_std.exp() * noise
    gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
    squashing = 2 * (math.log(2) - u - functional.softplus(-2 * u))  # log(1 - tanh(u)^2), stable where tanh(u) is 1
    return torch.tanh(u), (gaussian - squashing).sum(dim=-1)


class TwinCritic(nn.Module):
    """Q_1(s, a) and Q_2(s, a): two networks of the same shape, each pair of layers computed as one batched product.

    Args:
        inputs: Dimensions of an observation plus those of an action.
        hidden: Sizes of the hidden layers.
        init: Initial weights, drawn for each critic on its own.
    """

    def __init__(self, inputs: int, hidden: Sequence[int], init: Init = "uniform") -> None:
        super().__init__()
        pairs = [[LAYERS[init](*sizes) for _ in range(2)] for sizes in pairwise([inputs, *hidden, 1])]
        stacked = [torch.stack([layer.weight.detach().T for layer in pair]) for pair in pairs]
        self.weights = nn.ParameterList([nn.Parameter(weight.contiguous()) for weight in stacked])
        self.biases = nn.ParameterList(
            [nn.Parameter(torch.stack([layer.bias.detach()[None] for layer in pair])) for pair in pairs]
        )

    def forward(self, observations: Tensor, actions: Tensor) -> Tensor:
        """Return both values, of shape (2, batch)."""
        x = torch.cat([observations, actions], dim=-1).expand(2, -1, -1)
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            if i < last:
                x = functional.relu_(x)
        return x.squeeze(-1)
