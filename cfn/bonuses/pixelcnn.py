"""Pseudo-counts from a density model of images, a PixelCNN (Ostrovski et al. 2017), as the paper compares with it.

It follows the published runs of Taiga et al. (2020), and so departs from the original in its small, gated network
with a position embedding, in its plain RMSProp, and in adding the bonus to the reward without mixed returns.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from cfn import nets
from cfn.bonuses.base import Bonus
from cfn.errors import UsageError
from cfn.optim import RMSProp
from cfn.states import load_optimizer
from cfn.types import Array, Metrics, NonNegativeFloat, Positive, PositiveFloat, State

LEVELS = 8
CHANNELS, EMBEDDING = 16, 4


class MaskedConv2d(nn.Conv2d):
    """A convolution that sees only pixels before its own in reading order; type B sees its own as well."""

    mask: Tensor

    def __init__(self, inputs: int, outputs: int, kernel: int, sees_itself: bool) -> None:
        super().__init__(inputs, outputs, kernel, padding=kernel // 2)
        mask = torch.zeros(kernel, kernel)
        middle = kernel // 2
        mask[:middle] = 1
        mask[middle, : middle + sees_itself] = 1
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, input: Tensor) -> Tensor:
        """Convolve with the masked kernel."""
        return functional.conv2d(input, self.weight * self.mask, self.bias, padding=self.padding)


class GatedLayer(nn.Module):
    """x + tanh(a) * sigmoid(b), with a and b from the pixels before and from where this one is."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = MaskedConv2d(CHANNELS, 2 * CHANNELS, 3, sees_itself=True)
        self.place = nn.Conv2d(EMBEDDING, 2 * CHANNELS, 1, bias=False)

    def forward(self, input: Tensor, embedding: Tensor) -> Tensor:
        """One layer."""
        a, b = (self.conv(input) + self.place(embedding)).chunk(2, dim=1)
        return input + torch.tanh(a) * torch.sigmoid(b)


class PixelCNN(nn.Module):
    """The density of an image with 8 grey levels, pixel by pixel.

    Args:
        side: Its height and width.
    """

    def __init__(self, side: int) -> None:
        super().__init__()
        self.first = MaskedConv2d(1, CHANNELS, 7, sees_itself=False)
        self.layers = nn.ModuleList([GatedLayer(), GatedLayer()])
        self.embedding = nn.Parameter(0.05 * torch.randn(1, EMBEDDING, side, side))
        self.head = nn.Sequential(nn.Conv2d(CHANNELS, 64, 1), nn.ReLU(), nn.Conv2d(64, LEVELS, 1))

    def forward(self, levels: Tensor) -> Tensor:
        """Log p of each image, from its grey levels: never in bfloat16, in which small gains would drown."""
        with torch.autocast(levels.device.type, enabled=False):
            x = self.first(levels.unsqueeze(1).float() / (LEVELS - 1))
            for layer in self.layers:
                x = layer(x, self.embedding)
            logits: Tensor = self.head(functional.relu(x))
            return -functional.cross_entropy(logits, levels, reduction="none").sum(dim=(1, 2))


class PixelCNNBonus(Bonus):
    """scale * sqrt(max(exp(c PG / sqrt(t)) - 1, 0)), PG how much more probable one gradient step makes the image.

    Args:
        observation_space: Images (uint8, height x width).
        seed: Of the weights.
        device: Where the network is.
        scale: lambda of Eq. 1.
        gain_scale: c, the paper's "prediction gain scale".
        lr: Learning rate of RMSProp.
        side: Height and width to which images are resized.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        scale: NonNegativeFloat = 0.5,
        gain_scale: PositiveFloat = 0.5,
        lr: PositiveFloat = 1e-4,
        side: Positive = 42,
    ) -> None:
        if (shape := nets.image_shape(observation_space)) is None or shape[0] != 1:
            raise UsageError(
                f"bonus=pixelcnn is a model of grey images, and this environment observes {observation_space}: "
                "use bonus=cfn or bonus=rnd"
            )
        self.scale, self._gain_scale, self._side = scale, gain_scale, side
        self._device = torch.device(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._net = PixelCNN(side).to(self._device)
        self._optimizer = RMSProp(self._net.parameters(), lr)
        self._steps = 0
        self._losses: list[float] = []

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """The density model."""
        return (self._net,)

    def observe(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Learn each image, one gradient step each, and pay for what it gained."""
        return self.scale * np.array([self._learn(levels) for levels in self._quantized(observations)])

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """What the bonus of each image would be: the step is taken, and undone."""
        parameters = [p.detach().clone() for p in self._net.parameters()]
        moments = [{k: v.clone() for k, v in self._optimizer.state[p].items()} for p in self._net.parameters()]
        steps, losses = self._steps, list(self._losses)
        bonuses = []
        for levels in self._quantized(observations):
            bonuses.append(self._learn(levels))
            with torch.no_grad():
                for p, before, moment in zip(self._net.parameters(), parameters, moments, strict=True):
                    p.copy_(before)
                    self._optimizer.state[p].update({k: v.clone() for k, v in moment.items()})
                    if not moment:
                        self._optimizer.state[p].clear()
            self._steps, self._losses = steps, list(losses)
        return np.array(bonuses)

    def update(self) -> Metrics:
        """Nothing more to learn: a prediction gain is learning. Reports the loss, in nats per pixel."""
        losses, self._losses = self._losses, []
        return {"bonus/loss": float(np.mean(losses))} if losses else {}

    def state_dict(self) -> dict[str, Any]:
        """Network, optimiser, how many steps were taken, and losses that were not reported yet."""
        return {
            "net": self._net.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "steps": self._steps,
            "losses": list(self._losses),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over all of it."""
        self._net.load_state_dict(state["net"])
        load_optimizer(self._optimizer, state["optimizer"])
        self._steps, self._losses = state["steps"], list(state["losses"])

    def _learn(self, levels: Tensor) -> float:
        before = self._net(levels[None])
        self._optimizer.zero_grad()
        loss = -before.mean() / self._side**2
        loss.backward()
        self._optimizer.step()
        self._steps += 1
        self._losses.append(float(loss.detach()))
        with torch.no_grad():
            gain = float(self._net(levels[None]) - before)
        exponent = min(self._gain_scale * gain / np.sqrt(self._steps), 700.0)  # beyond, floats end
        return float(np.sqrt(max(np.expm1(exponent), 0.0)))

    def _quantized(self, observations: Array) -> Tensor:
        """Images of the network's size, of grey levels 0 to 7."""
        images = nets.to_tensor(observations, self._device)
        small = functional.interpolate(images, (self._side, self._side), mode="bilinear", align_corners=False)
        return (small * 255 * LEVELS / 256).long().squeeze(1).clamp_(max=LEVELS - 1)
