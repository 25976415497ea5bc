"""Pseudo-counts from a density model of images, a PixelCNN (Ostrovski et al., 2017), a baseline of the paper.

It follows the published runs, which use the implementation of Taiga et al. (2020). Departures from Ostrovski et al.,
for both values of `gate`: the network of `pixelcnn_network`, with one stack of convolutions and a position embedding,
and a bonus that is added to the reward without mixed Monte Carlo returns. With `gate: product` the gate is that of the
gated PixelCNN; with `gate: sum` it departs from it too, as in the published runs.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from cfn.bonuses.base import Bonus
from cfn.bonuses.pixelcnn_network import LEVELS, Gate, PixelCNN
from cfn.bonuses.visits import Visits
from cfn.checkpoints.stateful import load_optimizer
from cfn.errors import UsageError
from cfn.nn import networks
from cfn.nn.optim import RMSProp
from cfn.types import Array, Metrics, NonNegativeFloat, Positive, PositiveFloat, State


class PixelCNNBonus(Bonus):
    """scale * sqrt(max(exp(c PG / sqrt(t)) - 1, 0)), with PG the gain in log p of the image by one gradient step on it.

    Args:
        observation_space: Images (uint8, height x width).
        seed: Seed of the weights.
        device: Device of the network.
        scale: Weight of the bonus in the reward (lambda of Eq. 1).
        gain_scale: c, the paper's "prediction gain scale".
        lr: Learning rate of RMSProp.
        side: Height and width to which images are resized.
        gate: Gate of the network: `sum`, tanh(a) + sigmoid(b), as in the published runs, or `product`,
            tanh(a) * sigmoid(b), as in the gated PixelCNN of van den Oord et al.
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
        gate: Gate = "product",
    ) -> None:
        if (shape := networks.image_shape(observation_space)) is None or shape[0] != 1:
            raise UsageError(
                f"bonus=pixelcnn models grey images, but this environment has observations of {observation_space}: "
                "use bonus=cfn or bonus=rnd"
            )
        self.scale, self._gain_scale, self._side = scale, gain_scale, side
        self._device = torch.device(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._net = PixelCNN(side, gate).to(self._device)
        self._optimizer = RMSProp(self._net.parameters(), lr)
        self._steps = 0
        self._losses: list[float] = []

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Density model."""
        return (self._net,)

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Take one gradient step on each image, and return the bonuses of the prediction gains."""
        return self.scale * np.array([self._learn(levels) for levels in self._quantized(observations)])

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return the bonus of each image: its gradient step is taken, and undone."""
        parameters: list[Tensor] = list(self._net.parameters())
        before = [p.detach().clone() for p in parameters]
        state = self._optimizer.state
        moments = {p: {name: moment.clone() for name, moment in state[p].items()} for p in parameters if p in state}
        steps, losses = self._steps, list(self._losses)
        bonuses = []
        for levels in self._quantized(observations):
            bonuses.append(self._learn(levels))
            with torch.no_grad():
                torch._foreach_copy_(parameters, before)
            state.clear()
            state.update({p: {name: moment.clone() for name, moment in saved.items()} for p, saved in moments.items()})
            self._steps, self._losses = steps, list(losses)
        return np.array(bonuses)

    def update(self) -> Metrics:
        """Return the mean loss since the last call, in nats per pixel; learning takes place in `observe`."""
        losses, self._losses = self._losses, []
        return {"bonus/loss": float(np.mean(losses))} if losses else {}

    def state_dict(self) -> dict[str, Any]:
        return {
            "net": self._net.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "steps": self._steps,
            "losses": list(self._losses),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["net"].keys() != self._net.state_dict().keys():
            raise ValueError(
                "its PixelCNN has other layers, those of another version of cfn: "
                "resume the run with that version, or train it again"
            )
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
        exponent = min(self._gain_scale * gain / np.sqrt(self._steps), 700.0)  # avoids overflow of exp
        return float(np.sqrt(max(np.expm1(exponent), 0.0)))

    def _quantized(self, observations: Array) -> Tensor:
        """Return images resized to the network's input, with grey levels 0 to 7."""
        images = networks.to_tensor(observations, self._device)
        small = functional.interpolate(images, (self._side, self._side), mode="bilinear", align_corners=False)
        return (small * 255 * LEVELS / 256).long().squeeze(1).clamp_(max=LEVELS - 1)
