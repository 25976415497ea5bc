"""Soft actor-critic as the paper has it, which is Dopamine's (Haarnoja et al., 2018), for continuous actions.

Departures from the original: the temperature is learned, towards an entropy of -(action dimensions) / 2; targets are
n-step returns without importance weights; critics, actor and temperature take their gradient steps at once. Policy and
critics see actions in [-1, 1], whatever the environment's bounds are.
"""

import copy
from collections.abc import Sequence
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import torch
from annotated_types import Len
from torch import Tensor, nn

from cfn import memory, nets, seeding
from cfn.agents.actor_critic import Actor, TwinCritic
from cfn.agents.base import Agent
from cfn.device import Measured, Prefetcher, number, send
from cfn.errors import BadValueError, UsageError
from cfn.replay.frames import FrameStore, shared_or_own
from cfn.replay.recorder import Recorder
from cfn.replay.transitions import TransitionBatch, TransitionReplay
from cfn.states import load_optimizer, load_parts, save_parts
from cfn.types import Array, NonNegative, Positive, PositiveFloat, Probability

NETWORKS = ("actor", "critic", "target")
MEMORIES = ("replay", "recorder", "batches")
"""What only learning needs."""


class SACAgent(Agent):
    """Maximises return and entropy together.

    Defaults are the paper's for Fetch.

    Args:
        observation_space: Vectors.
        action_space: Bounded vectors.
        seed: Of weights, exploration and samples.
        device: Where the networks are.
        frames: Where observations are kept, if others keep theirs there too.
        num_envs: Environments that act at once.
        steps: How many will be taken at the most, if that is known: a buffer that cannot fill need not fit.
        lr: Learning rate of Adam, for critics, actor and temperature.
        batch_size: Transitions per update.
        gamma: Discount.
        n_step: Rewards per transition.
        capacity: Transitions in the replay buffer.
        min_size: Steps of uniformly random actions before learning begins.
        update_period: Environment steps per update.
        tau: How far the target critics follow in each update.
        reward_scale: What rewards are multiplied by when they are learned from.
        hidden: Of the hidden layers.
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
    ) -> None:
        if not isinstance(action_space, gym.spaces.Box) or len(action_space.shape) != 1:
            raise UsageError(f"agent=sac chooses continuous actions, not from {action_space}: use agent=rainbow")
        if not np.isfinite([action_space.low, action_space.high]).all():
            raise UsageError(f"agent=sac squashes actions into their bounds, and {action_space} has none: clip them")
        if (size := nets.vector_size(observation_space)) is None:
            raise UsageError(
                f"agent=sac learns from vectors, and this environment observes {observation_space}: use agent=rainbow, "
                "which takes images, if its actions are discrete"
            )
        if capacity < batch_size:
            raise BadValueError("capacity", f"{capacity} transitions cannot fill a batch of batch_size={batch_size}")
        action = np.zeros(action_space.shape, np.float32)
        frame = FrameStore.bytes_of((size,), observation_space.dtype)
        entry = TransitionReplay.bytes_of(1, action, prioritize=False)
        self.full_bytes = memory.require_buffer(capacity, entry, frame, steps)
        self.update_period = update_period
        self._device = torch.device(device)
        self._middle, self._reach = (
            (action_space.high + action_space.low) / 2,
            (action_space.high - action_space.low) / 2,
        )
        self._span = np.where(self._reach > 0, self._reach, 1)  # of what has one value only, nothing is to be learned
        self._batch_size, self._min_size = batch_size, max(min_size, 1)
        self._tau, self._reward_scale, self._target_entropy = tau, reward_scale, -len(action) / 2
        self._steps = 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._actor = Actor(size, len(action), hidden).to(self._device)
            self._critic = TwinCritic(size + len(action), hidden).to(self._device)
        self._target = copy.deepcopy(self._critic).requires_grad_(False)
        self._log_temperature = torch.zeros((), device=self._device, requires_grad=True)
        parameters = [*self._actor.parameters(), *self._critic.parameters(), self._log_temperature]
        self._optimizer = torch.optim.Adam(parameters, lr, fused=True)
        self._rngs = [seeding.generator(seed, stream) for stream in ("explore", "sample")]
        self._explore_rng, self._sample_rng = self._rngs
        self._noise_rng = torch.Generator().manual_seed(seeding.integer(seed, "noise"))
        store, owned = shared_or_own(frames, (size,), observation_space.dtype)
        self._replay = TransitionReplay(capacity, 1, store, action, prioritize=False, owns_frames=owned)
        self._recorder = Recorder(self._replay, num_envs, n_step, gamma)
        self._batches = Prefetcher(self._draw, self._replay.as_batch, self._device)

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Actor, critics and target critics."""
        return self._actor, self._critic, self._target

    @torch.no_grad()
    def act(self, observations: Array, explore: bool = True) -> Array:
        """A sample of the policy, uniformly random before learning begins; in evaluations the Gaussian's mean."""
        count = len(observations)
        if explore and self._steps < self._min_size:
            squashed = self._explore_rng.uniform(-1, 1, (count, len(self._middle)))
        else:
            inputs = nets.to_tensor(observations, self._device)
            tensor = (
                self._actor.sample(inputs, self._noise(count))[0] if explore else torch.tanh(self._actor(inputs)[0])
            )
            squashed = tensor.cpu().numpy()
        return (self._middle + self._reach * squashed).astype(np.float32)

    def observe(
        self,
        observations: Array,
        actions: Array,
        rewards: Array,
        next_observations: Array,
        terminated: Array,
        truncated: Array,
    ) -> None:
        """Add each environment's step to its n-step window, and what that completes to the replay."""
        squashed = ((actions - self._middle) / self._span).astype(np.float32)
        self._recorder.add(
            observations, squashed, rewards * self._reward_scale, next_observations, terminated, truncated
        )
        self._steps += len(observations)

    def cut(self, which: Array) -> None:
        """The n-step windows of these environments end with what was last seen."""
        self._recorder.cut(which)

    def update(self) -> Measured:
        """One gradient step of critics, actor and temperature, and a small one of the target critics."""
        if self._steps < self._min_size or len(self._replay) == 0:
            return {}
        batch = self._batches.take()
        states, next_states = (nets.to_tensor(a, self._device) for a in (batch.states, batch.next_states))
        actions, rewards, discounts = (
            send(torch.from_numpy(a), self._device) for a in (batch.actions, batch.rewards, batch.discounts)
        )
        temperature = self._log_temperature.detach().exp()
        target = self._targets(next_states, rewards, discounts, temperature)
        critic_loss = (self._critic(states, actions) - target).square().mean(dim=1).sum()
        chosen, log_density = self._actor.sample(states, self._noise(len(states)))
        self._critic.requires_grad_(False)  # it judges the actor and is not to be flattered by it
        actor_loss = (temperature * log_density - self._critic(states, chosen).amin(dim=0)).mean()
        self._critic.requires_grad_(True)
        surprise = log_density.detach().mean() + self._target_entropy
        temperature_loss = -self._log_temperature * surprise
        self._optimizer.zero_grad()
        (critic_loss + actor_loss + temperature_loss).backward()
        self._optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self._target.parameters()), list(self._critic.parameters()), self._tau)
        self._batches.prepare()
        return {"agent/loss": number(critic_loss), "agent/temperature": number(temperature)}

    def _draw(self) -> TransitionBatch:
        return self._replay.sample(self._batch_size, self._sample_rng)

    @torch.no_grad()
    def _targets(self, next_states: Tensor, rewards: Tensor, discounts: Tensor, temperature: Tensor) -> Tensor:
        """Reward + discount * (min Q(s', a') - temperature * log pi(a' | s')), a' from the policy as it is now."""
        actions, log_density = self._actor.sample(next_states, self._noise(len(next_states)))
        values: Tensor = self._target(next_states, actions).amin(dim=0)
        return rewards + discounts * (values - temperature * log_density)

    def _noise(self, count: int) -> Tensor:
        return send(torch.randn((count, len(self._middle)), generator=self._noise_rng), self._device)

    def state_dict(self) -> dict[str, Any]:
        """Networks, temperature, optimiser, replay (with frames, if its own), what is under way, steps, generators."""
        return {
            **save_parts(self, NETWORKS),
            "log_temperature": self._log_temperature.detach().clone(),
            "optimizer": self._optimizer.state_dict(),
            "steps": self._steps,
            "rngs": [rng.bit_generator.state for rng in self._rngs],
            "noise": self._noise_rng.get_state(),
            "memory": save_parts(self, MEMORIES),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over all of it."""
        load_parts(self, NETWORKS, state)
        load_optimizer(self._optimizer, state["optimizer"])
        with torch.no_grad():
            self._log_temperature.copy_(state["log_temperature"])
        self._steps = state["steps"]
        for rng, saved in zip(self._rngs, state["rngs"], strict=True):
            rng.bit_generator.state = saved
        self._noise_rng.set_state(state["noise"])
        if "memory" in state:
            load_parts(self, MEMORIES, state["memory"])
