"""Rainbow as in Dopamine, which the paper uses: C51, n-step returns and prioritised replay (Hessel et al., 2018).

Departures from the original Rainbow, all of them Dopamine's: double Q-learning, dueling streams and noisy networks are
off by default; priorities are square roots of the loss; importance weights are 1 / sqrt(priority) throughout training.
Departures from Dopamine: samples are drawn independently, not one per stratum; noisy layers are initialised as in
Fortunato et al. (2018); a time limit is a termination only with `timeout_is_terminal`.
"""

import logging
from collections.abc import Sequence
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import torch
from annotated_types import Ge, Len
from torch import Tensor, nn
from torch.nn import functional

from cfn import seeding
from cfn.agents.base import Agent
from cfn.agents.categorical import Support
from cfn.agents.q_network import QNetwork
from cfn.checkpoints.stateful import load_optimizer, load_parts, save_parts
from cfn.errors import BadValueError, UsageError
from cfn.nn import memory_limits, networks
from cfn.nn.compiling import compiled
from cfn.nn.device import Measured, fetch, number
from cfn.nn.network_input import NetworkInput, Normalize
from cfn.nn.optim import Adam, descend
from cfn.nn.prefetch import Prefetcher
from cfn.replay.frames import FrameStore, shared_or_own
from cfn.replay.recorder import Recorder
from cfn.replay.transitions import TransitionBatch, TransitionReplay
from cfn.types import Array, Finite, NonNegative, Positive, PositiveFloat, Probability

log = logging.getLogger(__name__)

ADAM_EPSILON = 1.5e-4
"""Adam's epsilon, as in Dopamine."""
MEMORIES = ("replay", "recorder", "batches")
"""Parts that only learning needs: an agent that only acts is loaded without them."""


class RainbowAgent(Agent):
    """Learns return distributions, and acts on the highest mean return with epsilon-greedy or noisy exploration.

    Defaults are the paper's values for Visual Gridworld.

    Args:
        observation_space: Vectors, or images, which are stacked along the last dimension if `frame_stack` is above 1.
        action_space: Discrete actions.
        seed: Seed of weights, exploration and sampling.
        device: Device of the networks.
        frames: Frame store shared with others; None creates one for this agent.
        frame_stack: Frames per observation.
        num_envs: Number of environments stepped together.
        steps: Upper bound on the steps of the run, if known; the memory check then counts only entries that can fill.
        lr: Learning rate of Adam.
        batch_size: Transitions per update.
        gamma: Discount factor.
        n_step: Rewards summed per transition.
        capacity: Capacity of the replay buffer, in transitions.
        min_size: Environment steps before learning begins.
        update_period: Environment steps per update.
        target_period: Environment steps between copies of the network to the target network.
        atoms: Atoms per return distribution.
        vmin: Lowest return of the support.
        vmax: Highest return of the support.
        epsilon: Final probability of a random action; it is 1 until learning begins.
        epsilon_decay: Environment steps over which epsilon falls from 1 to its final value once learning begins.
        eval_epsilon: Probability of a random action in evaluations, with or without noisy layers.
        double: Whether to use double Q-learning (van Hasselt et al., 2016).
        dueling: Whether values and advantages have separate streams.
        noisy: Whether noisy layers replace epsilon: the paper's baseline "Rainbow".
        channels: Channels of the three convolutions, for images.
        hidden: Sizes of the hidden layers, after the convolutions if there are any.
        timeout_is_terminal: Whether a truncation is stored as a termination, so that the last state's value is not
            bootstrapped, as in the published runs.
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
        frame_stack: int = 1,
        num_envs: int = 1,
        steps: int | None = None,
        lr: PositiveFloat = 1.25e-4,
        batch_size: Positive = 32,
        gamma: Probability = 0.99,
        n_step: Positive = 3,
        capacity: Positive = 1_000_000,
        min_size: NonNegative = 1000,
        update_period: Positive = 1,
        target_period: Positive = 500,
        atoms: Annotated[int, Ge(2)] = 51,
        vmin: Finite = -10.0,
        vmax: Finite = 10.0,
        epsilon: Probability = 0.001,
        epsilon_decay: NonNegative = 1000,
        eval_epsilon: Probability = 0.001,
        double: bool = False,
        dueling: bool = False,
        noisy: bool = False,
        channels: Annotated[Sequence[Positive], Len(3, 3)] = networks.CHANNELS,
        hidden: Annotated[Sequence[Positive], Len(1)] = (512,),
        timeout_is_terminal: bool = False,
        normalize_observations: Normalize = False,
    ) -> None:
        if not isinstance(action_space, gym.spaces.Discrete):
            raise UsageError(
                f"agent=rainbow needs discrete actions, and this environment has {action_space}: "
                "use agent=sac for continuous actions, or agent=random"
            )
        if vmin >= vmax:
            raise BadValueError("vmin", f"{vmin} is not below vmax={vmax}: choose a smaller vmin or a larger vmax")
        if capacity < batch_size:
            raise BadValueError(
                "capacity", f"{capacity} transitions cannot fill a batch of batch_size={batch_size}: choose more"
            )
        shape, action = observation_space.shape or (), np.zeros((), np.int64)
        shape = shape[:-1] if frame_stack > 1 else shape
        frame = FrameStore.bytes_of(shape, observation_space.dtype)
        entry = TransitionReplay.bytes_of(frame_stack, action)
        self.full_bytes = memory_limits.require_buffer(capacity, entry, frame, steps)
        self.update_period = update_period
        self._device = torch.device(device)
        self._input = NetworkInput(observation_space, normalize_observations, self._device)
        self._actions, self._first_action = int(action_space.n), int(action_space.start)
        self._batch_size, self._min_size = batch_size, max(min_size, 1)
        self._target_period, self._double, self._noisy = target_period, double, noisy
        self._timeout_is_terminal = timeout_is_terminal
        self._epsilon, self._epsilon_decay, self._eval_epsilon = epsilon, epsilon_decay, eval_epsilon
        self._steps = self._updates = 0
        self._support = Support(atoms, vmin, vmax, self._device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._net, self._target = (
                QNetwork(observation_space, self._actions, atoms, hidden, channels, dueling, noisy).to(self._device)
                for _ in range(2)
            )
        self._target.load_state_dict(self._net.state_dict())
        self._parameters = list(self._net.parameters())
        self._optimizer = Adam(self._parameters, lr, ADAM_EPSILON)
        self._step = self._learn
        self._rngs = [seeding.generator(seed, stream) for stream in ("explore", "evaluate", "sample")]
        self._explore_rng, self._evaluate_rng, self._sample_rng = self._rngs
        self._noise_rng = torch.Generator().manual_seed(seeding.integer(seed, "noise"))
        store, owned = shared_or_own(frames, shape, observation_space.dtype)
        self._replay = TransitionReplay(capacity, frame_stack, store, action, owns_frames=owned)
        self._recorder = Recorder(self._replay, num_envs, n_step, gamma)
        self._batches = Prefetcher(self._draw, self._replay.as_batch, self._device)

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Q-network and its target network."""
        return self._net, self._target

    @torch.no_grad()
    def act(self, observations: Array, explore: bool = True) -> Array:
        """Choose the action with the highest mean return, or with probability epsilon a random one."""
        rng = self._explore_rng if explore else self._evaluate_rng
        random = rng.random(len(observations)) < (self.epsilon if explore else self._eval_epsilon)
        actions = rng.integers(self._actions, size=len(observations))
        if not random.all():
            self._draw_noise(self._net, explore)
            greedy = self._support.mean(self._net(self._input.of(observations))).argmax(dim=1)
            actions = np.where(random, actions, *fetch(greedy))
        return actions + self._first_action

    @property
    def epsilon(self) -> float:
        """Probability of a random action: 1 until learning begins, then a linear decay; 0 with noisy layers."""
        learning_steps = self._steps - self._min_size
        if learning_steps < 0:
            return 1.0
        if self._noisy:
            return 0.0
        return max(1 - learning_steps / max(self._epsilon_decay, 1) * (1 - self._epsilon), self._epsilon)

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
        actions = actions - self._first_action
        if self._timeout_is_terminal:
            terminated = terminated | truncated
        self._recorder.add(observations, actions, rewards, next_observations, terminated, truncated)
        self._steps += len(observations)

    def cut(self, which: Array) -> None:
        """End the n-step windows of these environments at their last observation, whose value is bootstrapped."""
        self._recorder.cut(which)

    def update(self) -> Measured:
        """Take one gradient step towards the projected distribution of reward + discount * Z(s', a*)."""
        if self._steps < self._min_size or len(self._replay) == 0:
            return {}
        batch = self._batches.take()
        states, next_states, actions, weights = (
            networks.send_array(a, self._device)
            for a in (batch.states, batch.next_states, batch.actions, batch.weights)
        )
        shifted = self._support.shift(torch.from_numpy(batch.rewards), torch.from_numpy(batch.discounts))
        self._draw_noise(self._target, True)
        self._draw_noise(self._net, True)
        self._optimizer.prepare()
        loss, priorities = self._step(states, actions, weights, next_states, *shifted)
        self._batches.prepare()
        self._batches.write_back(
            lambda values: self._replay.update_priorities(batch, values.astype(np.float64)), priorities
        )
        self._updates += 1
        if self._updates * self.update_period % self._target_period < self.update_period:
            self._target.load_state_dict(self._net.state_dict())
        return {"agent/loss": number(loss)}

    def _draw(self) -> TransitionBatch:
        return self._replay.sample(self._batch_size, self._sample_rng)

    def compile(self) -> None:
        """Compile the update, unless it draws noise between two passes through the same network."""
        if self._noisy and self._double:
            log.info("agent.noisy=true with agent.double=true: Rainbow's update is not compiled.")
        else:
            self._step = compiled(self._learn, "Rainbow's update", self._device, self._optimizer)

    def _learn(
        self, states: Tensor, actions: Tensor, weights: Tensor, next_states: Tensor, below: Tensor, share: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Take one gradient step, and return the loss and the new priorities."""
        target = self._target_distribution(next_states, below, share)
        if self._double:  # the choice of a* had the noise drawn before the update
            self._draw_noise(self._net, True)
        rows = torch.arange(len(actions), device=self._device)
        logits = self._net(self._input(states))[rows, actions]
        losses = -(target * functional.log_softmax(logits, dim=1)).sum(dim=1)
        loss = (weights * losses).mean()
        descend(self._optimizer, (loss, self._parameters))
        return loss.detach(), (losses.detach() + 1e-10).sqrt()

    @torch.no_grad()
    def _target_distribution(self, next_states: Tensor, below: Tensor, share: Tensor) -> Tensor:
        """Return the projected distribution of reward + discount * Z(s', a*).

        a* is the best action by the target network, or with `double` by the network itself.
        """
        inputs = self._input(next_states)
        logits = self._target(inputs)
        choice_logits = self._net(inputs) if self._double else logits
        best = self._support.mean(choice_logits).argmax(dim=1)
        probabilities = logits[torch.arange(len(best), device=self._device), best].softmax(dim=1)
        return self._support.project(probabilities, below, share)

    def _draw_noise(self, net: QNetwork, on: bool) -> None:
        for layer in net.noisy_layers:
            layer.noise_on = on
            if on:
                layer.redraw(self._noise_rng)

    def state_dict(self) -> dict[str, Any]:
        self._batches.settle()
        return {
            "net": self._net.state_dict(),
            "target": self._target.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "steps": self._steps,
            "updates": self._updates,
            "input": self._input.state_dict(),
            "rngs": [rng.bit_generator.state for rng in self._rngs],
            "noise": self._noise_rng.get_state(),
            "memory": save_parts(self, MEMORIES),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._net.load_state_dict(state["net"])
        self._target.load_state_dict(state["target"])
        load_optimizer(self._optimizer, state["optimizer"])
        self._steps, self._updates = state["steps"], state["updates"]
        self._input.load_state_dict(state.get("input", {}))  # which older checkpoints do not have
        for rng, saved in zip(self._rngs, state["rngs"], strict=True):
            rng.bit_generator.state = saved
        self._noise_rng.set_state(state["noise"])
        if "memory" in state:
            load_parts(self, MEMORIES, state["memory"])
