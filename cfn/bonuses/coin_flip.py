"""The Coin Flip Network (Section 3): a bonus that learns to equal 1 / sqrt(N(s)) by regressing on coin flips.

Each visit to a state flips d coins; a network that is asked for the coins of a state can at best answer with the mean
over the state's visits, z_n, and E[z_n^2] = 1 / n (Eq. 3). So |f(s)|^2 / d estimates the inverse count (Eq. 5).

Two savings change no number (the tests hold them against the plain version): the prior is frozen, so its output for a
frame is computed once and kept beside the frame; and equal frames in a batch go through the network once, towards
the mean of their coins, with the weight of them all.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import gymnasium as gym
import numpy as np
import torch
from annotated_types import Ge, Len
from torch import Tensor, nn

from cfn import memory, nets, seeding
from cfn.bonuses.base import Bonus
from cfn.device import Measured, Prefetcher, number, send
from cfn.errors import BadValueError, UsageError
from cfn.moments import RunningMoments
from cfn.optim import RMSProp
from cfn.replay.coins import CoinBatch, CoinReplay
from cfn.replay.frames import FrameStore, shared_or_own
from cfn.states import load_optimizer, load_parts, save_parts
from cfn.types import Array, NonNegative, NonNegativeFloat, Positive, PositiveFloat, Probability, State

PRIOR_EPSILON = 1e-4
PRIOR_INITIAL_VARIANCE = 0.002
MEMORIES = ("replay", "batches")
"""What only learning needs."""


class CoinFlipBonus(Bonus):
    """B(s) = sqrt(|f(s)|^2 / d) (Eq. 5), with f the sum of a trained network and a frozen, normalised random prior.

    Defaults are the paper's for Visual Gridworld, but for the reward normalisation, which only that suite has.

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        seed: Of weights, coins and samples.
        device: Where the networks are.
        frames: Where frames are kept, if others keep theirs there too.
        steps: How many will be taken at the most, if that is known: a buffer that cannot fill need not fit.
        scale: lambda of Eq. 1.
        normalize: Whether the reward is scale * (B - running mean) / running variance (Appendix D.2).
        lr: Learning rate of RMSProp.
        batch_size: States per update.
        update_period: Environment steps per update.
        capacity: States in the replay buffer.
        min_size: States before learning and bonuses begin; until then the bonus is 0.
        d: Coins per visit.
        alpha: Weight of 1 / n_updates against |f(s)|^2 / d in the priority (Eq. 6).
        prioritize: Whether states are sampled by priority; else uniformly.
        prior: Whether the random prior initialises the bonus of new states near 1 (Section 3.5.2).
        flips: `rademacher` coins; `gaussian`, which count as well but with more variance (Appendix A); or `zero`, the
            control in which only the prior is left (Appendix E.2).
        channels: Of the three convolutions, for images.
        hidden: Of the hidden layers, for vectors.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        frames: FrameStore | None = None,
        steps: int | None = None,
        scale: NonNegativeFloat = 0.01,
        normalize: bool = False,
        lr: PositiveFloat = 1e-4,
        batch_size: Positive = 1024,
        update_period: Positive = 1,
        capacity: Positive = 1_000_000,
        min_size: NonNegative = 1000,
        d: Positive = 20,
        alpha: Probability = 0.5,
        prioritize: bool = True,
        prior: bool = True,
        flips: Literal["rademacher", "gaussian", "zero"] = "rademacher",
        channels: Annotated[Sequence[Positive], Len(3, 3)] = nets.CHANNELS,
        hidden: Sequence[Annotated[int, Ge(1)]] = nets.HIDDEN,
    ) -> None:
        if capacity < batch_size:
            raise BadValueError("capacity", f"{capacity} states cannot fill a batch of batch_size={batch_size}")
        if capacity < min_size:
            raise BadValueError(
                "capacity", f"{capacity} states never reach min_size={min_size}: learning would not begin"
            )
        shape, dtype = observation_space.shape or (), observation_space.dtype
        frame = FrameStore.bytes_of(shape, dtype) + 4 * d * prior
        entry = CoinReplay.bytes_of(d, flips == "rademacher")
        self.full_bytes = memory.require_buffer(capacity, entry, frame, steps)
        self.scale, self.normalize, self.update_period = scale, normalize, update_period
        self._batch_size, self._min_size, self._d, self._flips = batch_size, max(min_size, 1), d, flips
        self._device = torch.device(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._net = nets.coin_flip_net(observation_space, d, channels, hidden).to(self._device)
            self._prior = nets.coin_flip_net(observation_space, d, channels, hidden).to(self._device) if prior else None
        self._optimizer = RMSProp(self._net.parameters(), lr)
        self._rng = seeding.generator(seed, "coins")
        self._begun = False  # to learn; true of one that is loaded without its replay, too
        store, owned = shared_or_own(frames, shape, dtype)
        store.keep_features(d if prior else 0)
        self._replay = CoinReplay(capacity, d, store, flips == "rademacher", prioritize, alpha, owned)
        self._batches = Prefetcher(self._draw, self._replay.as_batch, self._device)
        self._prior_moments = RunningMoments((d,), PRIOR_INITIAL_VARIANCE)
        self._bonus_moments = RunningMoments()

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """The trained part. The prior's outputs are data: kept, and so computed alike on every day of a run."""
        return (self._net,)

    def observe(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """B(s_t); then the prior's moments and the coins of these visits (lines 11 to 15 of Algorithm 1)."""
        if observations.dtype != np.uint8 and not np.isfinite(observations).all():
            raise UsageError("an observation holds NaN or infinity, which no bonus can learn from")
        frames = self._replay.frames
        features = self._prior_features(observations)
        slots = np.array([frames.put(observation) for observation in observations], np.int32)
        frames.features[slots] = features
        rewards = np.zeros(len(observations))
        if self._begun:
            with torch.inference_mode():
                novelty = _root_mean_square(self._f(observations, features))
            rewards = self.scale * self._normalized(novelty)
            if self._prior is not None:
                self._prior_moments.update(features)
        self.flipped = self._flip(len(observations))
        self._replay.add(slots, self.flipped)
        self._begun = self._begun or len(self._replay) >= self._min_size
        return rewards

    @torch.inference_mode()
    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """B(s) of Eq. 5; like the reward, 0 until learning begins."""
        if not self._begun:
            return np.zeros(len(observations), np.float32)
        return _root_mean_square(self._f(observations, self._prior_features(observations)))

    def update(self) -> Measured:
        """One gradient step on the regression of Eq. 4, and the priorities of what was sampled (Eq. 6)."""
        if not self._begun:
            return {}
        batch = self._batches.take()
        output = self._f(batch.frames, batch.features)
        loss = self._loss(output, batch)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._batches.prepare()
        self._replay.update_priorities(batch, output.detach().square().mean(dim=1).cpu().numpy())
        return {"bonus/loss": number(loss)}

    def _draw(self) -> CoinBatch:
        return self._replay.sample(self._batch_size, self._rng)

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimiser, replay (with frames, if its own), moments, generator, and a batch drawn ahead."""
        return {
            "net": self._net.state_dict(),
            "prior": self._prior.state_dict() if self._prior else {},
            "optimizer": self._optimizer.state_dict(),
            "prior_moments": self._prior_moments.state_dict(),
            "bonus_moments": self._bonus_moments.state_dict(),
            "rng": self._rng.bit_generator.state,
            "begun": self._begun,
            "memory": save_parts(self, MEMORIES),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over all of it."""
        self._net.load_state_dict(state["net"])
        if self._prior:
            self._prior.load_state_dict(state["prior"])
        load_optimizer(self._optimizer, state["optimizer"])
        self._prior_moments.load_state_dict(state["prior_moments"])
        self._bonus_moments.load_state_dict(state["bonus_moments"])
        self._rng.bit_generator.state = state["rng"]
        self._begun = state["begun"]
        if "memory" in state:
            load_parts(self, MEMORIES, state["memory"])

    def _f(self, observations: Array, features: Array) -> Tensor:
        """F = trained part + normalised prior, whose raw output `features` is."""
        output: Tensor = self._net(nets.to_tensor(observations, self._device))
        if self._prior is None:
            return output
        moments = self._prior_moments
        prior = (features - moments.mean) / np.sqrt(moments.variance + PRIOR_EPSILON)
        return output + send(torch.from_numpy(prior).to(output.dtype), self._device)

    def _loss(self, output: Tensor, batch: CoinBatch) -> Tensor:
        """Mean over batch and coins of (c - f)^2; of k folded frames it is k |mean c - f|^2 and a constant."""
        target, repeats = (
            send(torch.from_numpy(a), self._device) for a in (batch.mean_flips, batch.repeats.astype(np.float32))
        )
        size = len(batch.entries) * self._d
        constant = batch.flips_square - (repeats * target.square().sum(dim=1)).sum() / size
        return (repeats * (target - output).square().sum(dim=1)).sum() / size + constant

    @torch.inference_mode()
    def _prior_features(self, observations: Array) -> Array:
        """The prior's raw output, computed for frames that have not been seen and looked up for those that have."""
        frames = self._replay.frames
        features = np.zeros((len(observations), frames.features.shape[1]), np.float32)
        if self._prior is None:
            return features
        features.fill(np.nan)
        for i, observation in enumerate(observations):
            if (slot := frames.find(observation)) is not None:
                features[i] = frames.features[slot]
        unknown = np.isnan(features[:, 0])
        if unknown.any():
            features[unknown] = self._prior(nets.to_tensor(observations[unknown], self._device)).cpu().numpy()
        return features

    def _flip(self, count: int) -> Array:
        shape = (count, self._d)
        if self._flips == "rademacher":
            return self._rng.integers(2, size=shape).astype(np.float32) * 2 - 1
        return (
            self._rng.standard_normal(shape, np.float32) if self._flips == "gaussian" else np.zeros(shape, np.float32)
        )

    def _normalized(self, novelty: Array) -> Array:
        if not self.normalize:
            return novelty
        self._bonus_moments.update(novelty)
        normalized: Array = (novelty - self._bonus_moments.mean) / self._bonus_moments.variance
        return normalized


def _root_mean_square(output: Tensor) -> Array:
    array: Array = output.square().mean(dim=1).sqrt().cpu().numpy()
    return array
