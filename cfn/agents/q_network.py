"""Rainbow's network: distributions of returns for each action, from images or vectors."""

import math
from collections.abc import Sequence

import gymnasium as gym
import torch
from torch import Tensor, nn
from torch.nn import functional

from cfn import nets
from cfn.device import send


class NoisyLinear(nn.Linear):
    """A linear layer with factorised Gaussian noise in place of epsilon (Fortunato et al., 2018).

    Noise is drawn by `redraw`, and switched off, as for evaluations, by `noise_on = False`. Means begin as PyTorch's
    linear layers do: uniform within 1 / sqrt(inputs).

    Args:
        inputs: Of the layer.
        outputs: Of the layer.
        sigma: The noise's initial scale, times 1 / sqrt(inputs).
    """

    noise_in: Tensor
    noise_out: Tensor

    def __init__(self, inputs: int, outputs: int, sigma: float = 0.5) -> None:
        super().__init__(inputs, outputs)
        self.sigma = nn.Parameter(torch.full((outputs, inputs), sigma / math.sqrt(inputs)))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), sigma / math.sqrt(inputs)))
        self.register_buffer("noise_in", torch.zeros(inputs))
        self.register_buffer("noise_out", torch.zeros(outputs))
        self.noise_on = True

    def redraw(self, generator: torch.Generator) -> None:
        """New noise: f(x) = sign(x) sqrt(|x|) of Gaussian numbers, by input and by output."""
        for noise in (self.noise_in, self.noise_out):
            drawn = send(torch.randn(noise.shape, generator=generator), noise.device)
            noise.copy_(drawn.sign() * drawn.abs().sqrt())

    def forward(self, input: Tensor) -> Tensor:
        """The layer with its noise: the noise of a weight is the product of its input's and its output's."""
        output = functional.linear(input, self.weight, self.bias)
        if not self.noise_on:
            return output
        noise = functional.linear(input * self.noise_in, self.sigma, self.bias_sigma)
        return output + noise * self.noise_out


class QNetwork(nn.Module):
    """Observations to logits (batch, actions, atoms).

    Images go through the Nature network's convolutions (Mnih et al., 2015) and hidden layers, vectors through hidden
    layers alone.

    Args:
        space: Observations: stacked images or vectors.
        actions: How many.
        atoms: Per distribution.
        hidden: Of the hidden layers.
        channels: Of the convolutions.
        dueling: Whether values and advantages have streams of their own (Wang et al., 2016).
        noisy: Whether the layers after the body are noisy.
    """

    def __init__(
        self,
        space: gym.Space[object],
        actions: int,
        atoms: int,
        hidden: Sequence[int] = (512,),
        channels: Sequence[int] = nets.CHANNELS,
        dueling: bool = False,
        noisy: bool = False,
    ) -> None:
        super().__init__()
        if shape := nets.image_shape(space):
            self.body, size = nets.convolutions(shape, channels, slope=0.0)
        elif length := nets.vector_size(space):
            self.body, size = nn.Sequential(), length
        else:
            raise nets.refuse(space)
        layers = [size, *hidden]
        linear = NoisyLinear if noisy else nn.Linear
        self._shape = (-1, actions, atoms)
        self.advantages = nets.perceptron(*layers, actions * atoms, slope=0.0, linear=linear)
        self.values = nets.perceptron(*layers, atoms, slope=0.0, linear=linear) if dueling else None
        self.noisy_layers = [layer for layer in self.modules() if isinstance(layer, NoisyLinear)]
        for layer in self.modules():
            if isinstance(layer, nn.Linear | nn.Conv2d) and not isinstance(layer, NoisyLinear):
                bound = math.sqrt(math.sqrt(3) / layer.weight[0].numel())  # Dopamine's variance scaling
                nn.init.uniform_(layer.weight, -bound, bound)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, observations: Tensor) -> Tensor:
        """The logits."""
        features = self.body(observations)
        advantages: Tensor = self.advantages(features).view(self._shape)
        if self.values is None:
            return advantages
        values: Tensor = self.values(features)
        return values[:, None] + advantages - advantages.mean(dim=1, keepdim=True)
