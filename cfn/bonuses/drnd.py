"""Distributional Random Network Distillation (Yang et al., 2024): a predictor of N random targets, one drawn per visit.

The best prediction f is the mean of the targets drawn at the visits of a state, so f estimates a count as the coins of
the Coin Flip Network do: with mu and B2 the mean and the mean square of the N targets, (f - mu)^2 / (B2 - mu^2) is on
average 1 / n after n visits. The paper's bonus is a |f - mu|^2 + (1 - a) sqrt((f^2 - mu^2) / (B2 - mu^2)): a distance
as in RND, and a statistic whose mean is 1 / n under the root.

`statistic: published` takes the root of that ratio for each output, clipped to [1e-6, 1], and averages the roots. The
mean of a root is not the root of a mean, and f^2 - mu^2 is negative as often as not, so this is biased even with an
ideal predictor: 0.66, 0.46, 0.30 and 0.18 instead of 1, 0.5, 0.25 and 0.1 after 1, 4, 16 and 100 visits.
`statistic: pooled` is sqrt(sum (f - mu)^2 / sum (B2 - mu^2)) over all outputs. `novelty` always is the pooled one.

Departures: the drawn targets are kept with their visits in a replay buffer, from which the predictor learns (the
published code redraws for each minibatch of a rollout); both terms are averages over outputs (sums in the online
code); the bonus is divided by its own running standard deviation, not by that of its discounted sum.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import gymnasium as gym
import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor, nn

from cfn import seeding
from cfn.bonuses.base import Bonus
from cfn.bonuses.inputs import ObservationCheck
from cfn.bonuses.rnd import predictor_network, target_network
from cfn.bonuses.visits import Visits
from cfn.bonuses.whitening import as_floats, whitened
from cfn.checkpoints.stateful import load_optimizer, load_parts, save_parts
from cfn.errors import BadValueError
from cfn.nn import compiling, memory_limits, networks
from cfn.nn.compiling import unpadded
from cfn.nn.device import Measured, number
from cfn.nn.optim import Adam, descend
from cfn.nn.prefetch import Prefetcher
from cfn.nn.running_stats import RunningStats
from cfn.replay.coins import CoinBatch, CoinReplay
from cfn.replay.frames import FrameStore, shared_or_own
from cfn.types import Array, NonNegative, NonNegativeFloat, Positive, PositiveFloat, Probability, State

RATIO_BOUNDS = (1e-6, 1.0)
"""Bounds of the published ratio, below its root."""
TINY = 1e-12
"""Smallest variance of targets that is divided by."""
MEMORIES = ("replay", "batches")
"""Parts that only learning needs."""


class DRNDBonus(Bonus):
    """scale * (alpha |f - mu|^2 + (1 - alpha) statistic) / running standard deviation.

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        seed: Seed of weights, draws and sampling.
        device: Device of the networks.
        frames: Frame store shared with others; None creates one for this bonus.
        steps: Upper bound on the steps of the run, if known.
        scale: Weight of the bonus in the reward.
        targets: Number N of target networks.
        alpha: Weight of the squared distance to the mean of the targets; the statistic has the rest.
        statistic: Estimate of 1 / sqrt(n): `published` (roots of clipped ratios, averaged over outputs) or `pooled`
            (root of the ratio of sums over outputs).
        outputs: Number of outputs of each network.
        lr: Learning rate of Adam.
        batch_size: Visits per update.
        update_period: Environment steps per update.
        capacity: Capacity of the replay buffer, in visits.
        min_size: Visits before learning begins.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        frames: FrameStore | None = None,
        steps: int | None = None,
        scale: NonNegativeFloat = 1.0,
        targets: Annotated[int, Ge(2)] = 10,
        alpha: Probability = 0.9,
        statistic: Literal["published", "pooled"] = "published",
        outputs: Positive = 512,
        lr: PositiveFloat = 1e-4,
        batch_size: Positive = 256,
        update_period: Positive = 1,
        capacity: Positive = 1_000_000,
        min_size: NonNegative = 1000,
    ) -> None:
        if capacity < max(batch_size, min_size):
            least = f"batch_size={batch_size} and min_size={min_size}"
            raise BadValueError("capacity", f"{capacity} visits are fewer than {least} need: choose more")
        self._check = ObservationCheck(observation_space)
        shape, dtype = observation_space.shape or (), observation_space.dtype
        entry = CoinReplay.bytes_of(targets)
        self.full_bytes = memory_limits.require_buffer(capacity, entry, FrameStore.bytes_of(shape, dtype), steps)
        self.scale, self.update_period = scale, update_period
        self._alpha, self._statistic = alpha, STATISTICS[statistic]
        self._observation_size = math.prod(shape)
        self._batch_size, self._min_size, self._device = batch_size, max(min_size, 1), torch.device(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = [target_network(observation_space, outputs) for _ in range(targets)]
            self._targets = nn.ModuleList(map(networks.orthogonal, made)).to(self._device)
            self._predictor = networks.orthogonal(predictor_network(observation_space, outputs)).to(self._device)
        self._parameters = list(self._predictor.parameters())
        self._optimizer = Adam(self._parameters, lr)
        self._step: Callable[[Tensor, Tensor, Tensor], Tensor] = self._learn
        self._padded: Callable[[Array], Array] = unpadded
        self._rng = seeding.generator(seed, "targets")
        store, owned = shared_or_own(frames, shape, dtype)
        # A visit stores its target as coins, all tails but the target's: their mean tells how often each was drawn.
        self._replay = CoinReplay(capacity, targets, store, prioritize=False, owns_frames=owned)
        self._batches = Prefetcher(self._draw, self._replay.as_batch, self._device)
        self._input_stats, self._stats = RunningStats(shape), RunningStats()

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Predictor. The targets are excluded: their outputs must not depend on `bf16`."""
        return (self._predictor,)

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Return the scaled bonuses; draw a target for each visit, and store both."""
        observations = self._check(observations)
        self._input_stats.update(as_floats(observations))
        with torch.inference_mode():
            prediction, targets = self._outputs_of(observations)
            distance = (prediction - targets.mean(dim=0)).square().mean(dim=1)
            mixed = self._alpha * distance + (1 - self._alpha) * self._statistic(prediction, targets)
        bonuses: Array = mixed.cpu().numpy().astype(np.float64)
        self._stats.update(bonuses)
        frames, drawn = self._replay.frames, self._rng.integers(len(self._targets), size=len(observations))
        slots = np.array([frames.put(observation) for observation in observations], np.int32)
        self._replay.add(slots, 2.0 * np.eye(len(self._targets))[drawn] - 1)
        rewards: Array = self.scale * bonuses / np.sqrt(self._stats.variance)
        return rewards

    @torch.inference_mode()
    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return the pooled statistic, which estimates 1 / sqrt(N(s))."""
        estimates: Array = pooled(*self._outputs_of(self._check(observations))).cpu().numpy().astype(np.float64)
        return estimates

    def update(self) -> Measured:
        """Take one gradient step towards the targets that were drawn at the visits."""
        if len(self._replay) < self._min_size:
            return {}
        batch = self._batches.take()
        inputs, frequencies = whitened(batch.frames, self._input_stats), (batch.mean_flips + 1) / 2
        arrays = (inputs, frequencies.astype(np.float32), batch.repeats.astype(np.float32))
        self._optimizer.prepare()
        loss = self._step(*(networks.send_array(self._padded(array), self._device) for array in arrays))
        self._batches.prepare()
        return {"bonus/loss": number(loss)}

    def compile(self) -> None:
        """Compile the update, for a few sizes to which the distinct frames of a batch are padded, where this pays."""
        if compiling.padding_pays("DRND's update", self._batch_size * self._observation_size, self._device):
            self._padded = partial(compiling.padded, maximum=self._batch_size)
            self._step = compiling.compiled(self._learn, "DRND's update", self._device, self._optimizer)

    def _learn(self, inputs: Tensor, frequencies: Tensor, repeats: Tensor) -> Tensor:
        """Take one gradient step, and return the loss.

        Args:
            inputs: Normalised distinct observations of the batch.
            frequencies: How often each target was drawn at the visits to each of them, as a share.
            repeats: Number of entries of each; padding has none.
        """
        prediction, targets = self._outputs(inputs)
        drawn = torch.einsum("bn,nbo->bo", frequencies, targets)  # mean over equal frames, as for coins
        loss = (repeats * (prediction - drawn).square().mean(dim=1)).sum() / self._batch_size
        descend(self._optimizer, (loss, self._parameters))
        return loss.detach()

    def _draw(self) -> CoinBatch:
        return self._replay.sample(self._batch_size, self._rng)

    def state_dict(self) -> dict[str, Any]:
        return {
            "targets": self._targets.state_dict(),
            "predictor": self._predictor.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "inputs": self._input_stats.state_dict(),
            "stats": self._stats.state_dict(),
            "rng": self._rng.bit_generator.state,
            "memory": save_parts(self, MEMORIES),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._targets.load_state_dict(state["targets"])
        self._predictor.load_state_dict(state["predictor"])
        load_optimizer(self._optimizer, state["optimizer"])
        self._input_stats.load_state_dict(state["inputs"])
        self._stats.load_state_dict(state["stats"])
        self._rng.bit_generator.state = state["rng"]
        if "memory" in state:
            load_parts(self, MEMORIES, state["memory"])

    def _outputs_of(self, observations: Array) -> tuple[Tensor, Tensor]:
        return self._outputs(networks.send_array(whitened(observations, self._input_stats), self._device))

    def _outputs(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the prediction (row, output) and the outputs of the targets (target, row, output)."""
        tensor = networks.to_input(inputs)
        with torch.no_grad():
            targets = torch.stack([target(tensor) for target in self._targets])
        return self._predictor(tensor), targets


def ratio(prediction: Tensor, targets: Tensor) -> Tensor:
    """Return (f^2 - mu^2) / (B2 - mu^2) of each output, which the paper proposes: its mean is 1 / n."""
    mean = targets.mean(dim=0)
    variance = targets.square().mean(dim=0) - mean.square()
    return (prediction.square() - mean.square()) / variance.clamp(min=TINY)


def published(prediction: Tensor, targets: Tensor) -> Tensor:
    """Return the mean over outputs of the root of the absolute ratio, clipped."""
    return ratio(prediction, targets).abs().clamp(*RATIO_BOUNDS).sqrt().mean(dim=1)


def pooled(prediction: Tensor, targets: Tensor) -> Tensor:
    """Return sqrt(sum (f - mu)^2 / sum (B2 - mu^2)), with sums over outputs."""
    mean = targets.mean(dim=0)
    variance = targets.square().mean(dim=0) - mean.square()
    return ((prediction - mean).square().sum(dim=1) / variance.sum(dim=1).clamp(min=TINY)).sqrt()


STATISTICS = {"published": published, "pooled": pooled}
"""Statistics by the name that the key `statistic` has for them."""
