"""Soft actor-critic as in Dopamine, which the paper uses (Haarnoja et al., 2018), for continuous actions.

Departures from the original: the temperature is learned, with a target entropy of -(action dimensions) / 2; targets
are n-step returns without importance weights; critics, actor and temperature share one gradient step. Policy and
critics work with actions in [-1, 1], which are rescaled to the environment's bounds.

Four keys choose between the published runs and standard SAC, which is the default: `target`, `init`, `clamp_log_std`
and `keep_cut_windows`. The published runs have `target=dopamine`, `init=glorot`, and the other two false.
"""

import copy
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import gymnasium as gym
import numpy as np
import torch
from annotated_types import Len
from torch import Tensor, nn

from cfn import seeding
from cfn.agents.actor_critic import Actor, Init, TwinCritic, squashed_sample
from cfn.agents.base import Agent
from cfn.checkpoints.stateful import load_optimizer, load_parts, save_parts
from cfn.errors import BadValueError, UsageError
from cfn.nn import memory_limits, networks
from cfn.nn.compiling import compiled
from cfn.nn.device import Measured, fetch, number, send
from cfn.nn.network_input import NetworkInput, Normalize
from cfn.nn.optim import Adam, descend
from cfn.nn.prefetch import Prefetcher
from cfn.replay.frames import FrameStore, shared_or_own
from cfn.replay.recorder import Recorder
from cfn.replay.transitions import TransitionBatch, TransitionReplay
from cfn.types import Array, NonNegative, Positive, PositiveFloat, Probability

NETWORKS = ("actor", "critic", "target")
"""Parts that are networks; `target=dopamine` adds the target actor."""
MEMORIES = ("replay", "recorder", "batches")
"""Parts that only learning needs: an agent that only acts is loaded without them."""


class SACAgent(Agent):
    """Maximises the return plus the entropy of the policy.

    Defaults are the paper's values for Fetch, and those of standard SAC where the paper is silent.

    Args:
        observation_space: Vectors.
        action_space: Bounded vectors.
        seed: Seed of weights, exploration and sampling.
        device: Device of the networks.
        frames: Observation store shared with others; None creates one for this agent.
        num_envs: Number of environments stepped together.
        steps: Upper bound on the steps of the run, if known; the memory check then counts only entries that can fill.
        lr: Learning rate of Adam, for critics, actor and temperature.
        batch_size: Transitions per update.
        gamma: Discount factor.
        n_step: Rewards summed per transition.
        capacity: Capacity of the replay buffer, in transitions.
        min_size: Environment steps with uniformly random actions before learning begins.
        update_period: Environment steps per update.
        tau: Weight of the networks in each update of their target networks (Polyak averaging).
        reward_scale: Factor on the rewards to learn from.
        hidden: Sizes of the hidden layers.
        target: Value of a next state. `standard`: Q and entropy of a sample of the actor. `dopamine`: Q of the mean
            action of a target actor, and the entropy of a sample of it, as in the published runs.
        init: Initial weights. `uniform`: PyTorch's default. `glorot`: Glorot's with zero biases, as in the published
            runs.
        clamp_log_std: Whether the logarithm of the policy's standard deviation is clamped to [-20, 2]; not in the
            published runs.
        keep_cut_windows: Whether to store transitions that a truncation ended after fewer than `n_step` rewards; the
            published runs never sample them.
        normalize_observations: Whether vectors are normalised by the running mean and standard deviation of the visited
            ones; `auto` does, and leaves images as they are.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        frames: FrameStore | None = None,
        num_envs: int = 1,
        steps: int | None = None,
        lr: PositiveFloat = 3e-4,
        batch_size: Positive = 256,
        gamma: Probability = 0.99,
        n_step: Positive = 3,
        capacity: Positive = 1_000_000,
        min_size: NonNegative = 10_000,
        update_period: Positive = 1,
        tau: Probability = 0.005,
        reward_scale: PositiveFloat = 1.0,
        hidden: Annotated[Sequence[Positive], Len(1)] = (256, 256),
        target: Literal["dopamine", "standard"] = "standard",
        init: Init = "uniform",
        clamp_log_std: bool = True,
        keep_cut_windows: bool = True,
        normalize_observations: Normalize = False,
    ) -> None:
        if not isinstance(action_space, gym.spaces.Box) or len(action_space.shape) != 1:
            raise UsageError(
                f"agent=sac needs continuous actions (vectors), and this environment has {action_space}: "
                "use agent=rainbow for discrete actions, or agent=random"
            )
        if not np.isfinite([action_space.low, action_space.high]).all():
            raise UsageError(
                f"agent=sac needs bounded actions, and {action_space} has infinite bounds: "
                "set finite bounds in the environment's action space"
            )
        if (size := networks.vector_size(observation_space)) is None:
            raise UsageError(
                f"agent=sac needs vectors as observations, and this environment has {observation_space}: "
                "use agent=rainbow for images with discrete actions"
            )
        if capacity < batch_size:
            raise BadValueError(
                "capacity", f"{capacity} transitions cannot fill a batch of batch_size={batch_size}: choose more"
            )
        action = np.zeros(action_space.shape, np.float32)
        frame = FrameStore.bytes_of((size,), observation_space.dtype)
        entry = TransitionReplay.bytes_of(1, action, prioritize=False)
        self.full_bytes = memory_limits.require_buffer(capacity, entry, frame, steps)
        self.update_period = update_period
        self._device = torch.device(device)
        self._input = NetworkInput(observation_space, normalize_observations, self._device)
        self._centre, self._half_range = (
            (action_space.high + action_space.low) / 2,
            (action_space.high - action_space.low) / 2,
        )
        self._divisor = np.where(self._half_range > 0, self._half_range, 1)  # avoids 0 / 0 where low equals high
        self._batch_size, self._min_size = batch_size, max(min_size, 1)
        self._tau, self._reward_scale, self._target_entropy = tau, reward_scale, -len(action) / 2
        self._steps = 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._actor = Actor(size, len(action), hidden, init, clamp_log_std).to(self._device)
            self._critic = TwinCritic(size + len(action), hidden, init).to(self._device)
        self._target = copy.deepcopy(self._critic).requires_grad_(False)
        self._target_actor = copy.deepcopy(self._actor).requires_grad_(False) if target == "dopamine" else None
        self._network_names = NETWORKS if self._target_actor is None else (*NETWORKS, "target_actor")
        self._log_temperature = torch.zeros((), device=self._device, requires_grad=True)
        self._parameters = {net: list(getattr(self, f"_{net}").parameters()) for net in self._network_names}
        trained = [*self._parameters["actor"], *self._parameters["critic"], self._log_temperature]
        self._optimizer = Adam(trained, lr)
        self._step = self._learn
        self._rngs = [seeding.generator(seed, stream) for stream in ("explore", "sample")]
        self._explore_rng, self._sample_rng = self._rngs
        self._noise_rng = torch.Generator().manual_seed(seeding.integer(seed, "noise"))
        store, owned = shared_or_own(frames, (size,), observation_space.dtype)
        self._replay = TransitionReplay(capacity, 1, store, action, prioritize=False, owns_frames=owned)
        self._recorder = Recorder(self._replay, num_envs, n_step, gamma, keep_cut_windows)
        self._batches = Prefetcher(self._draw, self._replay.as_batch, self._device)

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Actor, critics, target critics, and the target actor if there is one."""
        return tuple(getattr(self, f"_{name}") for name in self._network_names)

    @torch.no_grad()
    def act(self, observations: Array, explore: bool = True) -> Array:
        """Sample the policy, or uniformly before learning begins; evaluations use the mean of the Gaussian."""
        count = len(observations)
        if explore and self._steps < self._min_size:
            squashed = self._explore_rng.uniform(-1, 1, (count, len(self._centre)))
        else:
            inputs = self._input.of(observations)
            tensor = (
                self._actor.sample(inputs, self._noise(count))[0] if explore else torch.tanh(self._actor(inputs)[0])
            )
            (squashed,) = fetch(tensor)
        return (self._centre + self._half_range * squashed).astype(np.float32)

    def observe(
        self,
        observations: Array,
        actions: Array,
        rewards: Array,
        next_observations: Array,
        terminated: Array,
        truncated: Array,
    ) -> None:
        """Add each environment's step to its n-step window, and completed transitions to the replay buffer."""
        self._input.count(observations)
        squashed = ((actions - self._centre) / self._divisor).astype(np.float32)
        self._recorder.add(
            observations, squashed, rewards * self._reward_scale, next_observations, terminated, truncated
        )
        self._steps += len(observations)

    def cut(self, which: Array) -> None:
        """End the n-step windows of these environments at their last observation."""
        self._recorder.cut(which)

    def update(self) -> Measured:
        """Take one gradient step with critics, actor and temperature, and move the target networks by `tau`."""
        if self._steps < self._min_size or len(self._replay) == 0:
            return {}
        batch = self._batches.take()
        arrays = (batch.states, batch.actions, batch.rewards, batch.discounts, batch.next_states)
        tensors = [networks.send_array(array, self._device) for array in arrays]
        noises = [self._noise(len(batch.states)) for _ in range(2)]
        self._optimizer.prepare()
        loss, temperature = self._step(*tensors, *noises)
        self._batches.prepare()
        return {"agent/loss": number(loss), "agent/temperature": number(temperature)}

    def compile(self) -> None:
        """Compile the update."""
        self._step = compiled(self._learn, "SAC's update", self._device, self._optimizer)

    def _learn(
        self,
        states: Tensor,
        actions: Tensor,
        rewards: Tensor,
        discounts: Tensor,
        next_states: Tensor,
        target_noise: Tensor,
        noise: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Take one gradient step and move the target networks; return the critics' loss and the temperature."""
        states, next_states = self._input(states), self._input(next_states)
        temperature = self._log_temperature.detach().exp()
        target = self._targets(next_states, rewards, discounts, temperature, target_noise)
        critic_loss = (self._critic(states, actions) - target).square().mean(dim=1).sum()
        chosen, log_density = self._actor.sample(states, noise)
        actor_loss = (temperature * log_density - self._critic(states, chosen).amin(dim=0)).mean()
        entropy_gap = log_density.detach().mean() + self._target_entropy  # positive when the entropy is too low
        descend(
            self._optimizer,
            (actor_loss, self._parameters["actor"]),
            (critic_loss, self._parameters["critic"]),
            (-self._log_temperature * entropy_gap, [self._log_temperature]),
        )
        with torch.no_grad():
            torch._foreach_lerp_(self._parameters["target"], self._parameters["critic"], self._tau)
            if self._target_actor is not None:
                torch._foreach_lerp_(self._parameters["target_actor"], self._parameters["actor"], self._tau)
        return critic_loss.detach(), temperature

    def _draw(self) -> TransitionBatch:
        return self._replay.sample(self._batch_size, self._sample_rng)

    @torch.no_grad()
    def _targets(
        self, next_states: Tensor, rewards: Tensor, discounts: Tensor, temperature: Tensor, noise: Tensor
    ) -> Tensor:
        """Return reward + discount * (min Q(s', a') - temperature * log pi(a'' | s')).

        a'' is a sample of the policy. a' is the same sample, or with `target=dopamine` the policy's mean action; the
        policy is then the target actor.
        """
        if self._target_actor is None:
            actions, log_density = self._actor.sample(next_states, noise)
        else:
            mean, log_std = self._target_actor(next_states)
            actions, log_density = torch.tanh(mean), squashed_sample(mean, log_std, noise)[1]
        values: Tensor = self._target(next_states, actions).amin(dim=0)
        return rewards + discounts * (values - temperature * log_density)

    def _noise(self, count: int) -> Tensor:
        return send(torch.randn((count, len(self._centre)), generator=self._noise_rng), self._device)

    def state_dict(self) -> dict[str, Any]:
        return {
            **save_parts(self, self._network_names),
            "log_temperature": self._log_temperature.detach().clone(),
            "optimizer": self._optimizer.state_dict(),
            "steps": self._steps,
            "input": self._input.state_dict(),
            "rngs": [rng.bit_generator.state for rng in self._rngs],
            "noise": self._noise_rng.get_state(),
            "memory": save_parts(self, MEMORIES),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_parts(self, self._network_names, state)
        load_optimizer(self._optimizer, state["optimizer"])
        with torch.no_grad():
            self._log_temperature.copy_(state["log_temperature"])
        self._steps = state["steps"]
        self._input.load_state_dict(state.get("input", {}))  # which older checkpoints do not have
        for rng, saved in zip(self._rngs, state["rngs"], strict=True):
            rng.bit_generator.state = saved
        self._noise_rng.set_state(state["noise"])
        if "memory" in state:
            load_parts(self, MEMORIES, state["memory"])
