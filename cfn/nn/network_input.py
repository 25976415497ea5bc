"""Observations as network input: bytes to [0, 1], and vectors, on request, normalised by their running statistics."""

from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from cfn.errors import BadValueError
from cfn.nn import networks
from cfn.nn.running_stats import RunningStats
from cfn.types import Array

Normalize = bool | Literal["auto"]
"""Whether vectors are normalised. True refuses images, `auto` leaves them as they are."""

CLIP = 10.0
"""Largest normalised value, in standard deviations: distant states stay distinct, and outliers do not explode."""
EPSILON = 1e-8
"""Constant added to the variance, for entries that never change."""
START_WEIGHT = 1e-4
"""Weight of the initial mean 0 and variance 1, in visits: entries of any scale are normalised after few visits."""


class NetworkInput:
    """Converts observations to network input.

    With `normalize`, entries of vectors become (x - mean) / standard deviation, clipped to [-10, 10]. Mean and
    deviation are those of all visits so far, so stored observations are normalised when they are used, not when they
    are stored.

    Args:
        space: Observation space.
        normalize: Whether to normalise vectors (the key `normalize_observations`); `auto` leaves images as they are.
        device: Device of the networks.
    """

    def __init__(self, space: gym.Space[Any], normalize: Normalize, device: torch.device) -> None:
        size = networks.vector_size(space)
        if normalize is True and size is None:
            raise BadValueError(
                "normalize_observations",
                f"only vectors are normalised, and the observations are {space}: set it to auto or false",
            )
        self.normalize, self.device = bool(normalize) and size is not None, device
        self._stats = RunningStats((size or 0,))
        self._stats.count = START_WEIGHT
        self._mean, self._factor = (torch.zeros(size or 0, device=device) for _ in range(2))
        self._send_stats()

    def count(self, observations: Array) -> None:
        """Add visited observations to the statistics."""
        if self.normalize:
            self._stats.update(observations)
            self._send_stats()

    def __call__(self, observations: Tensor) -> Tensor:
        """Convert observations on the device."""
        inputs = networks.to_input(observations)
        return ((inputs - self._mean) * self._factor).clamp(-CLIP, CLIP) if self.normalize else inputs

    def of(self, observations: Array) -> Tensor:
        """Copy a batch of observations to the device, and convert it."""
        return self(networks.send_array(observations, self.device))

    def state_dict(self) -> dict[str, Any]:
        return self._stats.state_dict() if self.normalize else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.normalize:
            if {np.shape(state[name]) for name in ("mean", "variance")} != {self._stats.mean.shape}:
                raise ValueError("the statistics of the observations have another size")
            self._stats.load_state_dict(state)
            self._send_stats()

    def _send_stats(self) -> None:
        """Update the tensors in place: a compiled update keeps reading the same ones."""
        factor = 1 / np.sqrt(self._stats.variance + EPSILON)
        for tensor, values in ((self._mean, self._stats.mean), (self._factor, factor)):
            tensor.copy_(torch.from_numpy(values))
