"""Networks of the coin-flip bonus: the trained part, and the frozen random prior that is added (Section 3.5.2)."""

from collections.abc import Sequence

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from cfn.nn import networks
from cfn.nn.running_stats import RunningStats
from cfn.replay.frames import FrameStore
from cfn.types import Array

PRIOR_EPSILON = 1e-4
"""Constant added to the variance of the prior's outputs before division."""
PRIOR_INITIAL_VARIANCE = 0.002
"""Variance of the prior's outputs before the first observation."""


def coin_flip_net(
    space: gym.Space[object],
    outputs: int,
    channels: Sequence[int] = networks.CHANNELS,
    hidden: Sequence[int] = networks.HIDDEN,
) -> nn.Module:
    """Return a network for the trained part or the prior: convolutions or hidden layers, then a linear layer."""
    if shape := networks.image_shape(space):
        body, size = networks.convolutions(shape, channels)
        net = nn.Sequential(body, nn.Linear(size, outputs))
    elif length := networks.vector_size(space):
        net = networks.perceptron(length, *hidden, outputs)
    else:
        raise networks.unsupported(space)
    return networks.orthogonal(net).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


class RandomPrior:
    """Frozen random network, whose outputs are stored with the frames and normalised by running statistics.

    Args:
        net: Network; None: there is no prior, and everything that it adds is 0.
        outputs: Number of its outputs.
        frames: Frame store that keeps its raw outputs (`features`).
        device: Device of the network.
    """

    def __init__(self, net: nn.Module | None, outputs: int, frames: FrameStore, device: torch.device) -> None:
        self.net = None if net is None else net.to(device)
        self.stats = RunningStats((outputs,), PRIOR_INITIAL_VARIANCE)
        self._frames, self._device = frames, device
        frames.keep_features(outputs if net is not None else 0)

    def store(self, observations: Array, slots: Array) -> Array:
        """Return the raw outputs of frames in these slots of the store; they are computed once, and stored."""
        features: Array = self._complete(observations, self._frames.features[slots])
        self._frames.features[slots] = features
        return features

    def features(self, observations: Array) -> Array:
        """Return the raw outputs, from the frame store where they are known; the store does not change."""
        features = np.full((len(observations), self._frames.features.shape[1]), np.nan, np.float32)
        if self.net is not None:
            for i, observation in enumerate(observations):
                if (slot := self._frames.find(observation)) is not None:
                    features[i] = self._frames.features[slot]
        return self._complete(observations, features)

    def count(self, features: Array) -> None:
        """Add raw outputs of visited states to the running statistics."""
        if self.net is not None:
            self.stats.update(features)

    def normalized(self, features: Array) -> Array:
        """Return the normalised outputs; without a prior, zeros of one column, which add nothing."""
        if self.net is None:
            return np.zeros((len(features), 1), np.float32)
        prior: Array = (features - self.stats.mean) / np.sqrt(self.stats.variance + PRIOR_EPSILON)
        return prior.astype(features.dtype)

    @torch.inference_mode()
    def _complete(self, observations: Array, features: Array) -> Array:
        """Compute the raw outputs where `features` are NaN, for frames that are new to the frame store."""
        if self.net is not None and (new := np.isnan(features[:, 0])).any():
            features[new] = self.net(networks.to_tensor(observations[new], self._device)).cpu().numpy()
        return features
