"""SAC's networks: a tanh-squashed Gaussian over actions, and two critics in one."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from cfn import nets

LOG_STD_RANGE = (-20.0, 2.0)


class Actor(nn.Module):
    """Observations to distributions of actions in [-1, 1]: a = tanh(u), u Gaussian (Haarnoja et al., 2018, App. C).

    Args:
        inputs: Numbers in an observation.
        actions: Numbers in an action.
        hidden: Of the hidden layers.
    """

    def __init__(self, inputs: int, actions: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.net = nets.perceptron(inputs, *hidden, 2 * actions, slope=0.0)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and logarithm of the standard deviation of u."""
        mean, log_std = self.net(observations).chunk(2, dim=-1)
        return mean, log_std.clamp(*LOG_STD_RANGE)

    def sample(self, observations: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions, from standard Gaussian noise, and the logarithms of their densities."""
        mean, log_std = self(observations)
        u = mean + log_std.exp() * noise
        gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
        squashing = 2 * (math.log(2) - u - functional.softplus(-2 * u))  # log(1 - tanh(u)^2), also where tanh is 1
        return torch.tanh(u), (gaussian - squashing).sum(dim=-1)


class TwinCritic(nn.Module):
    """Q_1(s, a) and Q_2(s, a): two networks of one shape, whose layers are multiplied together, two at a time.

    Args:
        inputs: Numbers in an observation and an action.
        hidden: Of the hidden layers.
    """

    def __init__(self, inputs: int, hidden: Sequence[int]) -> None:
        super().__init__()
        pairs = [[nn.Linear(*sizes) for _ in range(2)] for sizes in pairwise([inputs, *hidden, 1])]
        stacked = [torch.stack([layer.weight.detach().T for layer in pair]) for pair in pairs]
        self.weights = nn.ParameterList([nn.Parameter(weight.contiguous()) for weight in stacked])
        self.biases = nn.ParameterList(
            [nn.Parameter(torch.stack([layer.bias.detach()[None] for layer in pair])) for pair in pairs]
        )

    def forward(self, observations: Tensor, actions: Tensor) -> Tensor:
        """Both values: (2, batch)."""
        x = torch.cat([observations, actions], dim=-1).expand(2, -1, -1)
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            if i < last:
                x = functional.relu_(x)
        return x.squeeze(-1)
