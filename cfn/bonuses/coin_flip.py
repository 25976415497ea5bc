"""The Coin Flip Network (Section 3): a bonus that learns 1 / sqrt(N(s)) by regression on coin flips.

Each visit to a state flips d coins, and a network f is trained to predict them. The best prediction is the mean z_n of
the coins over the state's n visits, and E[z_n^2] = 1 / n (Eq. 3). So |f(s)|^2 / d estimates the inverse count (Eq. 5).

Two optimisations change no result, and tests compare them with the plain version. The prior is frozen, so its output
is computed once per frame and stored with the frame. Equal frames in a batch pass through the network once, with the
mean of their coins as the target and their number as the weight.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import gymnasium as gym
import numpy as np
import torch
from annotated_types import Ge, Len
from torch import Tensor, nn

from cfn import seeding
from cfn.bonuses import flips as coin_flips
from cfn.bonuses.base import Bonus
from cfn.bonuses.coin_flip_network import RandomPrior, coin_flip_net
from cfn.bonuses.coin_floor import CoinTally
from cfn.bonuses.inputs import ObservationCheck
from cfn.bonuses.rewards import normalized
from cfn.bonuses.state_actions import ActionOutputs
from cfn.bonuses.visits import Visits
from cfn.checkpoints.stateful import load_optimizer, load_parts, save_parts
from cfn.errors import BadValueError
from cfn.nn import compiling, memory_limits, networks
from cfn.nn.compiling import compiled, unpadded
from cfn.nn.device import Measured, fetch, number, send
from cfn.nn.network_input import NetworkInput, Normalize
from cfn.nn.optim import RMSProp, descend
from cfn.nn.prefetch import Prefetcher
from cfn.nn.running_stats import RunningStats
from cfn.replay.coins import CoinBatch, CoinReplay, Eviction
from cfn.replay.frames import FrameStore, shared_or_own
from cfn.types import Array, Metrics, NonNegative, NonNegativeFloat, Positive, PositiveFloat, Probability, State

MEMORIES = ("replay", "batches")
"""Parts that only learning needs. To compute novelty without learning, a bonus is loaded without them."""


class CoinFlipBonus(Bonus):
    """B(s) = sqrt(|f(s)|^2 / d) (Eq. 5), with f the sum of a trained network and a frozen, normalised random prior.

    Defaults are the paper's values for Visual Gridworld, without the reward normalisation, which only that suite uses.

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        seed: Seed of weights, coins and sampling.
        device: Device of the networks.
        frames: Frame store shared with others; None creates one for this bonus.
        steps: Upper bound on the steps of the run, if known; the memory check then counts only entries that can fill.
        scale: Weight of the bonus in the reward (lambda of Eq. 1).
        normalize: Whether the reward is scale * (B - running mean) / running variance (Appendix D.2).
        lr: Learning rate of RMSProp.
        batch_size: Replay entries per update.
        update_period: Environment steps per update.
        capacity: Capacity of the replay buffer, in visits.
        min_size: Visits before learning begins; until then the bonus is 0.
        d: Number of coins per visit.
        alpha: Weight of 1 / (n_updates + 1) against |f(s)|^2 / d in the priority (Eq. 6).
        prioritize: Whether to sample by priority or uniformly.
        prior: Whether to add the random prior, which initialises the bonus of new states near 1 (Section 3.5.2).
        flips: Distribution of the coins: `rademacher`; `balanced`, coins nearly orthogonal to f(s), which make the
            count less noisy; `gaussian`, which has more variance (Appendix A); or `zero`, the control in which only
            the prior remains (Appendix E.2).
        channels: Channels of the three convolutions, for images.
        hidden: Sizes of the hidden layers, for vectors.
        of: Whether to count states, or state-action pairs (`state_action`), for which the network has d outputs per
            action. Needs discrete actions.
        action_space: Actions, for `of: state_action`.
        eviction: Visits that a full replay buffer discards: the oldest (`fifo`), or preferably those of states with
            little novelty (`novelty`, the "forgetting" that the paper leaves to future work).
        normalize_observations: Whether vectors are normalised by the running mean and standard deviation of the visited
            ones; `auto` does, and leaves images as they are.
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
        flips: coin_flips.Flips = "rademacher",
        channels: Annotated[Sequence[Positive], Len(3, 3)] = networks.CHANNELS,
        hidden: Sequence[Annotated[int, Ge(1)]] = networks.HIDDEN,
        eviction: Eviction = "fifo",
        of: Literal["state", "state_action"] = "state",
        action_space: gym.Space[Any] | None = None,
        normalize_observations: Normalize = False,
    ) -> None:
        self._check = ObservationCheck(observation_space)
        self.counts_actions = of == "state_action"
        self._outputs = ActionOutputs(self.counts_actions, action_space, d)
        outputs = d * self._outputs.actions
        if eviction == "novelty" and not prioritize:
            raise BadValueError(
                "eviction", "novelty is known from the priorities: set prioritize=true, or eviction=fifo"
            )
        if capacity < batch_size:
            raise BadValueError(
                "capacity", f"{capacity} states cannot fill a batch of batch_size={batch_size}: choose more"
            )
        if capacity < min_size:
            raise BadValueError(
                "capacity", f"{capacity} states never reach min_size={min_size}, so learning cannot begin: choose more"
            )
        shape, dtype = observation_space.shape or (), observation_space.dtype
        self._device = torch.device(device)
        self._input = NetworkInput(observation_space, normalize_observations, self._device)
        frame = FrameStore.bytes_of(shape, dtype) + 4 * outputs * (prior and not self._input.normalize)
        entry = CoinReplay.bytes_of(d, coin_flips.are_coins(flips), eviction)
        self.full_bytes = memory_limits.require_buffer(capacity, entry, frame, steps)
        self.scale, self.normalize, self.update_period = scale, normalize, update_period
        self._batch_size, self._min_size, self._d, self._flips = batch_size, max(min_size, 1), d, flips
        self._observation_size = math.prod(shape)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = [coin_flip_net(observation_space, outputs, channels, hidden) for _ in range(1 + prior)]
        self._net = made[0].to(self._device)
        self._parameters = list(self._net.parameters())
        self._optimizer = RMSProp(self._parameters, lr)
        self._step: Callable[..., tuple[Tensor, Tensor]] = self._learn
        self._padded: Callable[[Array], Array] = unpadded
        self._rng = seeding.generator(seed, "coins")
        self._begun = False  # whether learning has begun; the replay buffer may be empty after loading without memory
        store, owned = shared_or_own(frames, shape, dtype)
        self._prior = RandomPrior(made[1] if prior else None, outputs, store, self._input)
        coins = coin_flips.are_coins(flips)
        self._replay = CoinReplay(
            capacity, d, store, coins, prioritize, alpha, owned, eviction, self._rng, self._outputs.actions
        )
        self._batches = Prefetcher(self._draw, self._replay.as_batch, self._device)
        self._bonus_stats = RunningStats()
        self._tally = CoinTally(d)

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Trained network. The prior is excluded: its stored outputs must not depend on `bf16`."""
        return (self._net,)

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Return scaled B(s_t), then update the prior's statistics and store flips (lines 11 to 15 of Algorithm 1)."""
        observations = self._check(observations)
        actions = self._outputs.taken(visits, len(observations))
        self._input.count(observations)
        slots = np.array([self._replay.frames.put(observation) for observation in observations], np.int32)
        features = self._prior.stored(slots)
        rewards, predictions = np.zeros(len(observations)), np.zeros((len(observations), self._d), np.float32)
        if self._begun:
            output = self._outputs.select(self._f(observations, features), torch.from_numpy(actions))
            predictions = output.numpy()
            novelty = _root_mean_square(output)
            rewards = self.scale * (normalized(novelty, self._bonus_stats) if self.normalize else novelty)
            self._prior.count(features)
        else:
            self._prior.complete(observations, features)
        self._prior.keep(slots, features)
        flips = coin_flips.draw(self._flips, self._rng, predictions)
        self._replay.add(slots, flips, actions)
        if visits is not None and (states := visits.pairs if self.counts_actions else visits.states) is not None:
            self._tally.add(states, flips)
        self._begun = self._begun or len(self._replay) >= self._min_size
        return rewards

    @torch.inference_mode()
    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return B(s) of Eq. 5; like the reward, it is 0 until learning begins.

        A bonus of state-action pairs returns B(s, a), with the action at the end of each true state; without true
        states, the mean over all actions.
        """
        observations = self._check(observations)
        if not self._begun:
            return np.zeros(len(observations), np.float32)
        output = self._f(observations, self._prior.known(observations))
        if not self.counts_actions:
            return _root_mean_square(output)
        if states is not None:
            actions = self._outputs.numbers([state[-1] for state in states])
            return _root_mean_square(self._outputs.select(output, torch.from_numpy(actions)))
        each = [self._outputs.select(output, torch.full((len(output),), a)) for a in range(self._outputs.actions)]
        mean: Array = np.mean([_root_mean_square(output) for output in each], axis=0)
        return mean

    def report(self, states: Sequence[State], counts: Array) -> Metrics:
        """Return `bonus/floor_mse`, the error that a perfect network would have with these coins."""
        return self._tally.report(states, counts)

    def update(self) -> Measured:
        """Take one gradient step on the regression of Eq. 4, and update the priorities of the batch (Eq. 6)."""
        if not self._begun:
            return {}
        batch = self._batches.take()
        prior = self._prior.normalized(self._prior.of_batch(batch.frames, batch.features))
        actions = batch.slots % self._outputs.actions
        arrays = (batch.frames, prior, actions.astype(np.int64), batch.mean_flips, batch.repeats)
        square = torch.tensor(batch.flips_square, dtype=torch.float32)
        self._optimizer.prepare()
        tensors = (networks.send_array(self._padded(array), self._device) for array in arrays)
        loss, novelty = self._step(*tensors, send(square, self._device))
        self._batches.prepare()
        self._batches.write_back(lambda values: self._replay.update_priorities(batch, values), novelty)
        return {"bonus/loss": number(loss)}

    def compile(self) -> None:
        """Compile the update, for a few sizes to which the distinct frames of a batch are padded, where this pays."""
        if compiling.padding_pays("The coin-flip update", self._batch_size * self._observation_size, self._device):
            self._padded = partial(compiling.padded, maximum=self._batch_size)
            self._step = compiled(self._learn, "the coin-flip update", self._device, self._optimizer)

    def _learn(
        self,
        frames: Tensor,
        prior: Tensor,
        actions: Tensor,
        mean_flips: Tensor,
        repeats: Tensor,
        flips_square: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Take one gradient step, and return the loss and |f(s)|^2 / d of each frame.

        The loss is the mean of (c - f)^2 over entries and coins; k equal frames give k |mean c - f|^2 plus a constant.

        Args:
            frames: Distinct frames of the batch.
            prior: Normalised prior of each.
            actions: Action of each, if state-action pairs are counted.
            mean_flips: Mean flips over the entries of each.
            repeats: Number of entries of each; padding has none.
            flips_square: Mean of the squared flips, over entries and coins.
        """
        output: Tensor = self._net(self._input(frames)) + prior
        output = self._outputs.select(output, actions)
        size = self._batch_size * self._d
        constant = flips_square - (repeats * mean_flips.square().sum(dim=1)).sum() / size
        loss = (repeats * (mean_flips - output).square().sum(dim=1)).sum() / size + constant
        descend(self._optimizer, (loss, self._parameters))
        return loss.detach(), output.detach().square().mean(dim=1)

    def _draw(self) -> CoinBatch:
        return self._replay.sample(self._batch_size, self._rng)

    def state_dict(self) -> dict[str, Any]:
        self._batches.settle()
        return {
            "net": self._net.state_dict(),
            "prior": self._prior.net.state_dict() if self._prior.net else {},
            "optimizer": self._optimizer.state_dict(),
            "prior_moments": self._prior.stats.state_dict(),
            "bonus_moments": self._bonus_stats.state_dict(),
            "rng": self._rng.bit_generator.state,
            "begun": self._begun,
            "input": self._input.state_dict(),
            "tally": self._tally.state_dict(),
            "memory": save_parts(self, MEMORIES),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._net.load_state_dict(state["net"])
        if self._prior.net:
            self._prior.net.load_state_dict(state["prior"])
        load_optimizer(self._optimizer, state["optimizer"])
        self._prior.stats.load_state_dict(state["prior_moments"])
        self._bonus_stats.load_state_dict(state["bonus_moments"])
        self._rng.bit_generator.state = state["rng"]
        self._begun = state["begun"]
        self._input.load_state_dict(state.get("input", {}))  # older checkpoints have none
        if "tally" in state:  # older checkpoints of runs without true states have none
            self._tally.load_state_dict(state["tally"])
        if "memory" in state:
            load_parts(self, MEMORIES, state["memory"])

    @torch.inference_mode()
    def _f(self, observations: Array, features: Array) -> Tensor:
        """Return f(s), the trained network plus the normalised prior, on the CPU. The device is waited for once.

        Args:
            observations: States.
            features: Raw outputs of the prior; missing ones are computed and filled in.
        """
        new = self._prior.missing(features)
        queued = [self._net(self._input.of(observations)).float()]
        if new.any():
            queued.append(self._prior.queue(observations[new]))
        output, *computed = fetch(*queued)
        for rows in computed:
            features[new] = rows
        return torch.from_numpy(output + self._prior.normalized(features))


def _root_mean_square(output: Tensor) -> Array:
    array: Array = output.square().mean(dim=1).sqrt().numpy()
    return array
