"""E3B, exploration via elliptical episodic bonuses (Henaff et al., 2022): novelty of features within one episode.

b = h' M h, where h are features of the state and M is the inverse of ridge I + the sum of h h' over the episode so far.
With one-hot features it is 1 / (n + ridge) after n visits: an episodic count, squared. The features come from inverse
dynamics.

Departures: the first step of an episode is paid, too (0 in the published code); the features of an episode are those of
a frozen copy of the network from its beginning, because M is of no use to features that moved; pairs of states across
the end of an episode are not learned from; rewards are divided by the standard deviation of all rewards, which the
published code overestimates for batches of environments; and the network learns from uniform samples of a replay buffer
instead of the newest rollouts.
"""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from cfn.bonuses.episodic_counts import require_rows
from cfn.bonuses.inverse_covariance import InverseCovariance
from cfn.bonuses.inverse_dynamics import InverseDynamics
from cfn.bonuses.transition_bonus import MAX_GRADIENT, TransitionBonus
from cfn.bonuses.visits import Visits
from cfn.nn import networks
from cfn.nn.optim import Adam
from cfn.nn.running_stats import RunningStats
from cfn.replay.frames import FrameStore
from cfn.types import Array, NonNegative, NonNegativeFloat, Positive, PositiveFloat, State


class E3BBonus(TransitionBonus):
    """scale * h' M h / running standard deviation, with inverse-dynamics features h of the state.

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        action_space: Discrete actions or vectors.
        seed: Seed of weights and sampling.
        device: Device of the networks.
        frames: Frame store shared with others; None creates one for this bonus.
        num_envs: Number of environments.
        steps: Upper bound on the steps of the run, if known.
        scale: Weight of the bonus in the reward.
        ridge: Regularisation lambda of the covariance; the first bonus of an episode is |h|^2 / ridge.
        normalize: Whether the bonus is divided by its running standard deviation.
        lr: Learning rate of Adam.
        batch_size: Transitions per update.
        update_period: Environment steps per update.
        capacity: Capacity of the replay buffer, in transitions.
        min_size: Transitions before learning begins; until then the features are random.
    """

    kind: ClassVar[Literal["episode"]] = "episode"
    _max_norm: ClassVar[float | None] = MAX_GRADIENT

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        frames: FrameStore | None = None,
        num_envs: Positive = 1,
        steps: int | None = None,
        scale: NonNegativeFloat = 1.0,
        ridge: PositiveFloat = 0.1,
        normalize: bool = True,
        lr: PositiveFloat = 1e-4,
        batch_size: Positive = 128,
        update_period: Positive = 1,
        capacity: Positive = 100_000,
        min_size: NonNegative = 1000,
    ) -> None:
        buffer = (capacity, batch_size, min_size)
        super().__init__("e3b", observation_space, action_space, seed, device, frames, steps, *buffer)
        self.scale, self.update_period, self._normalize = scale, update_period, normalize
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._model = InverseDynamics(observation_space, self._actions.size).to(self._device)
        self._frozen = nn.ModuleList(copy.deepcopy(self._model.features) for _ in range(num_envs))
        self._parameters = list(self._model.parameters())
        self._optimizer = Adam(self._parameters, lr)
        self._covariance = InverseCovariance(num_envs, self._model.size, ridge)
        self._ridge, self._stats = ridge, RunningStats()

    @property
    def networks(self) -> tuple[nn.Module, ...]:
        """Inverse-dynamics network. Its frozen copies are excluded: their outputs must not depend on `bf16`."""
        return (self._model,)

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Return the scaled bonuses, and add the states to their episodes and the transitions to the buffer."""
        observations = self._check(observations)
        (begins,) = (visits or Visits()).require("e3b", "begins")
        require_rows("e3b", observations, len(self._frozen))
        self._remember(observations, visits)
        for row in np.flatnonzero(begins).tolist():
            self._frozen[row].load_state_dict(self._model.features.state_dict())
        self._covariance.clear(begins)
        bonuses = self._covariance.visit(self._frozen_features(observations))
        if self._normalize:
            self._stats.update(bonuses)
            bonuses = bonuses / np.sqrt(self._stats.variance)
        return self.scale * bonuses

    @torch.inference_mode()
    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return |h|^2 / ridge, the bonus at the beginning of an episode: it does not depend on visits."""
        features = self._model.features(self._inputs(self._check(observations)))
        norms: Array = (features.double().square().sum(dim=1) / self._ridge).cpu().numpy()
        return norms

    def _loss(self, states: Tensor, actions: Tensor, discounts: Tensor, next_states: Tensor) -> Tensor:
        """Return the loss of the predicted actions."""
        _, _, outputs = self._model(networks.to_input(states), networks.to_input(next_states))
        return self._actions.loss(outputs, actions)

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "model": self._model.state_dict(),
            "frozen": self._frozen.state_dict(),
            "covariance": self._covariance.state_dict(),
            "stats": self._stats.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._model.load_state_dict(state["model"])
        self._frozen.load_state_dict(state["frozen"])
        self._covariance.load_state_dict(state["covariance"])
        self._stats.load_state_dict(state["stats"])

    @torch.inference_mode()
    def _frozen_features(self, observations: Array) -> Array:
        """Return the features of each environment, from the copy of the network that its episode began with."""
        inputs = self._inputs(observations)
        rows = [net(inputs[row : row + 1]) for row, net in enumerate(self._frozen)]
        features: Array = torch.cat(rows).cpu().numpy()
        return features
