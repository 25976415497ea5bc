"""Network of Rainbow: a return distribution for each action, from images or vectors."""

import math
from collections.abc import Sequence

import gymnasium as gym
import torch
from torch import Tensor, nn
from torch.nn import functional

from cfn.nn import networks
from cfn.nn.device import send


class NoisyLinear(nn.Linear):
    """Linear layer with factorised Gaussian noise, which replaces epsilon-greedy exploration (Fortunato et al., 2018).

    `redraw` draws new noise; `noise_on = False` switches noise off, for evaluation. The means are initialised as in
    PyTorch's linear layers: uniform within 1 / sqrt(inputs).

    Args:
        inputs: Number of inputs.
        outputs: Number of outputs.
        sigma: Initial scale of the noise, multiplied by 1 / sqrt(inputs).
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
        """Draw new noise for each input and each output: f(x) = sign(x) sqrt(|x|), with x Gaussian."""
        for noise in (self.noise_in, self.noise_out):
            drawn = send(torch.randn(noise.shape, generator=generator), noise.device)
            noise.copy_(drawn.sign() * drawn.abs().sqrt())

    def forward(self, input: Tensor) -> Tensor:
        """Apply the noisy layer; the noise of a weight is the noise of its input times the noise of its output."""
        output = functional.linear(input, self.weight, self.bias)
        if not self.noise_on:
            return output
        noise = functional.linear(input * self.noise_in, self.sigma, self.bias_sigma)
        return output + noise * self.noise_out


class QNetwork(nn.Module):
    """Maps observations to logits of shape (batch, actions, atoms).

    Images pass through the convolutions of the Nature network (Mnih et al., 2015) and then through hidden layers;
    vectors pass through hidden layers only.

    Args:
        space: Observation space: stacked images or vectors.
        actions: Number of actions.
        atoms: Atoms per distribution.
        hidden: Sizes of the hidden layers.
        channels: Channels of the convolutions.
        dueling: Whether values and advantages have separate streams (Wang et al., 2016).
        noisy: Whether the layers after the convolutions are noisy.
    """

    def __init__(
        self,
        space: gym.Space[object],
        actions: int,
        atoms: int,
        hidden: Sequence[int] = (512,),
        channels: Sequence[int] = networks.CHANNELS,
        dueling: bool = False,
        noisy: bool = False,
    ) -> None:
        super().__init__()
        if shape := networks.image_shape(space):
            self.body, size = networks.convolutions(shape, channels, slope=0.0)
        elif length := networks.vector_size(space):
            self.body, size = networks.Chain(), length
        else:
            raise networks.unsupported(space)
        layers = [size, *hidden]
        linear = NoisyLinear if noisy else nn.Linear
        self._shape = (-1, actions, atoms)
        self.advantages = networks.perceptron(*layers, actions * atoms, slope=0.0, linear=linear)
        self.values = networks.perceptron(*layers, atoms, slope=0.0, linear=linear) if dueling else None
        self.noisy_layers = [layer for layer in self.modules() if isinstance(layer, NoisyLinear)]
        for layer in self.modules():
            if isinstance(layer, nn.Linear | nn.Conv2d) and not isinstance(layer, NoisyLinear):
                bound = math.sqrt(math.sqrt(3) / layer.weight[0].numel())  # Dopamine's variance scaling
                nn.init.uniform_(layer.weight, -bound, bound)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, observations: Tensor) -> Tensor:
        """Return the logits."""
        features = self.body(observations)
        advantages: Tensor = self.advantages(features).view(self._shape)
        if self.values is None:
            return advantages
        values: Tensor = self.values(features)
        return values[:, None] + advantages - advantages.mean(dim=1, keepdim=True)
