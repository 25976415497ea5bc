"""The Intrinsic Curiosity Module (Pathak et al., 2017): the error of a forward model in inverse-dynamics features.

It does not count: transitions that cannot be predicted, such as outcomes of a noisy action, stay novel for ever.

Departures: the networks learn from uniform samples of a replay buffer instead of the newest rollouts; the weight of
the forward loss does not depend on the length of a rollout. With `detach` (the default, not published) the forward loss
does not train the features, which could otherwise shrink to make themselves predictable.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from cfn.bonuses.inverse_dynamics import InverseDynamics, head
from cfn.bonuses.transition_bonus import MAX_GRADIENT, TransitionBonus
from cfn.bonuses.visits import Visits
from cfn.nn import networks
from cfn.nn.optim import Adam
from cfn.replay.content_index import Digest, content_digest
from cfn.replay.frames import FrameStore
from cfn.types import Array, NonNegative, NonNegativeFloat, Positive, PositiveFloat, Probability, State

MAX_REMEMBERED = 100_000
"""Largest number of observations whose latest errors are remembered, for `novelty`."""


class ICMBonus(TransitionBonus):
    """scale * |f(phi(s), a) - phi(s')|^2 / 2, with features phi from inverse dynamics and a forward model f.

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        action_space: Discrete actions or vectors.
        seed: Seed of weights and sampling.
        device: Device of the networks.
        frames: Frame store shared with others; None creates one for this bonus.
        steps: Upper bound on the steps of the run, if known.
        scale: Weight of the bonus in the reward (eta of the paper).
        forward: Weight of the forward loss (beta of the paper); the inverse loss has the rest.
        detach: Whether the forward loss leaves the features alone; false: it trains them, too, as published.
        lr: Learning rate of Adam.
        batch_size: Transitions per update.
        update_period: Environment steps per update.
        capacity: Capacity of the replay buffer, in transitions.
        min_size: Transitions before learning begins.
    """

    kind: ClassVar[Literal["transition"]] = "transition"
    _max_norm: ClassVar[float | None] = MAX_GRADIENT

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        frames: FrameStore | None = None,
        steps: int | None = None,
        scale: NonNegativeFloat = 0.01,
        forward: Probability = 0.2,
        detach: bool = True,
        lr: PositiveFloat = 1e-4,
        batch_size: Positive = 128,
        update_period: Positive = 1,
        capacity: Positive = 100_000,
        min_size: NonNegative = 1000,
    ) -> None:
        buffer = (capacity, batch_size, min_size)
        super().__init__("icm", observation_space, action_space, seed, device, frames, steps, *buffer)
        self.scale, self.update_period, self._forward_weight, self._detach = scale, update_period, forward, detach
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._inverse = InverseDynamics(observation_space, self._actions.size).to(self._device)
            size = self._inverse.size
            self._forward = head(size + self._actions.size, size).to(self._device)
        self._parameters = [*self._inverse.parameters(), *self._forward.parameters()]
        self._optimizer = Adam(self._parameters, lr)
        self._latest: dict[Digest, float] = {}

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Inverse and forward model."""
        return self._inverse, self._forward

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Return the scaled errors of the transitions, and add these to the replay buffer."""
        observations = self._check(observations)
        numbers, after = self._remember(observations, visits)
        with torch.inference_mode():
            errors, _ = self._errors(*map(self._sent, (observations, numbers, after)))
        values: Array = errors.cpu().numpy().astype(np.float64)
        for observation, value in zip(observations, values.tolist(), strict=True):
            digest = content_digest(observation.tobytes())
            self._latest.pop(digest, None)
            self._latest[digest] = value  # moves it to the end: the first entry is the oldest
        while len(self._latest) > MAX_REMEMBERED:
            del self._latest[next(iter(self._latest))]
        return self.scale * values

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return the error of the latest transition from each observation, at the time of that visit; 0 if unknown."""
        checked = self._check(observations)
        return np.array([self._latest.get(content_digest(one.tobytes()), 0.0) for one in checked])

    def _loss(self, states: Tensor, actions: Tensor, discounts: Tensor, next_states: Tensor) -> Tensor:
        """Return the weighted inverse and forward loss."""
        errors, outputs = self._errors(states, actions, next_states)
        inverse = self._actions.loss(outputs, actions)
        return (1 - self._forward_weight) * inverse + self._forward_weight * errors.mean()

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "inverse": self._inverse.state_dict(),
            "forward": self._forward.state_dict(),
            "digests": np.array(list(self._latest), np.int64).reshape(-1, 2),
            "errors": np.array(list(self._latest.values())),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._inverse.load_state_dict(state["inverse"])
        self._forward.load_state_dict(state["forward"])
        pairs = zip(state["digests"].tolist(), state["errors"].tolist(), strict=True)
        self._latest = {(low, high): error for (low, high), error in pairs}

    def _errors(self, states: Tensor, numbers: Tensor, next_states: Tensor) -> tuple[Tensor, Tensor]:
        """Return half the squared error of the forward model, and the predicted actions."""
        phi, phi_after, outputs = self._inverse(networks.to_input(states), networks.to_input(next_states))
        actions = self._actions.encoded(numbers)
        if self._detach:
            phi, phi_after = phi.detach(), phi_after.detach()
        predicted = self._forward(torch.cat([phi, actions], dim=1))
        return forward_error(predicted, phi_after), outputs


def forward_error(predicted: Tensor, features: Tensor) -> Tensor:
    """Return half the squared distance of predicted and true features, for each row."""
    return (predicted - features).square().sum(dim=1) / 2
