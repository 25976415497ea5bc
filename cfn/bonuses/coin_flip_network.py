"""Networks of the coin-flip bonus: the trained part, and the frozen random prior that is added (Section 3.5.2)."""

from collections.abc import Sequence

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from cfn.nn import networks
from cfn.nn.device import fetch
from cfn.nn.network_input import NetworkInput
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
        net = networks.Chain(body, nn.Linear(size, outputs))
    elif length := networks.vector_size(space):
        net = networks.perceptron(length, *hidden, outputs)
    else:
        raise networks.unsupported(space)
    return networks.orthogonal(net).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


class RandomPrior:
    """Frozen random network, whose outputs are normalised by running statistics.

    Outputs are computed once per frame and stored with it, unless observations are normalised: then the input of a
    frame moves, and its outputs are computed when they are used.

    Args:
        net: Network; None: there is no prior, and everything that it adds is 0.
        outputs: Number of its outputs.
        frames: Frame store that keeps its raw outputs (`features`).
        inputs: Conversion of observations to network input.
    """

    def __init__(self, net: nn.Module | None, outputs: int, frames: FrameStore, inputs: NetworkInput) -> None:
        self.net = None if net is None else net.to(inputs.device)
        self.stats = RunningStats((outputs,), PRIOR_INITIAL_VARIANCE)
        self._frames, self._inputs, self._size = frames, inputs, outputs
        self._moving = net is not None and inputs.normalize
        frames.keep_features(0 if net is None or self._moving else outputs)

    def stored(self, slots: Array) -> Array:
        """Return the raw outputs of frames in these slots of the store; NaN where they are not computed yet."""
        return self._unknown(len(slots)) if self._moving else self._frames.features[slots]

    def known(self, observations: Array) -> Array:
        """Return the raw outputs of the frames that are in the store; NaN for others."""
        features = self._unknown(len(observations))
        if self.net is not None and not self._moving:
            for i, observation in enumerate(observations):
                if (slot := self._frames.find(observation)) is not None:
                    features[i] = self._frames.features[slot]
        return features

    def missing(self, features: Array) -> Array:
        """Return which rows of raw outputs are not computed yet."""
        return np.zeros(len(features), bool) if self.net is None else np.isnan(features[:, 0])

    def complete(self, observations: Array, features: Array) -> Array:
        """Compute the raw outputs that are missing in `features`, fill them in, and return all."""
        if (new := self.missing(features)).any():
            (features[new],) = fetch(self.queue(observations[new]))
        return features

    def keep(self, slots: Array, features: Array) -> None:
        """Store raw outputs of frames in these slots, so that they are computed once."""
        if not self._moving:
            self._frames.features[slots] = features

    def of_batch(self, frames: Array, features: Array) -> Array:
        """Return the raw outputs of sampled frames, whose stored outputs are `features`."""
        return fetch(self.queue(frames))[0] if self._moving else features

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
    def queue(self, observations: Array) -> Tensor:
        """Let the device compute raw outputs, without waiting for them."""
        assert self.net is not None
        outputs: Tensor = self.net(self._inputs.of(observations))
        return outputs

    def _unknown(self, rows: int) -> Array:
        return np.full((rows, 0 if self.net is None else self._size), np.nan, np.float32)
