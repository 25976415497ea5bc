"""The Coin Flip Network in closed form: a linear network with infinitely many coins, on frozen random features.

A linear network that regresses on coins answers phi'(Phi'Phi)^-1 phi in expectation (Appendix B), with phi the features
of a state and Phi those of all visits. With frozen features this can be computed: without coins, gradients or a replay
buffer. While the visited states have linearly independent features it is exactly 1 / N(s); beyond, states share counts
as linear regression makes them. The squares of the bonus, summed over all visits, are then the rank of the features, at
most their number, instead of the number of states: the bonus is too small. Elliptical bonuses of this form are known
from linear bandits and from E3B (Henaff et al., 2022), which forgets at the end of an episode; this one does not.

Features of images: three frozen random convolutions, as in the coin-flip network's prior, and a sparse random
projection. Features of vectors: a random linear layer with random biases. Then a ReLU, and division by the norm.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from scipy import sparse

from cfn import seeding
from cfn.bonuses.base import Bonus
from cfn.bonuses.inputs import ObservationCheck
from cfn.bonuses.inverse_gram import InverseGram
from cfn.bonuses.rewards import normalized
from cfn.bonuses.visits import Visits
from cfn.nn import networks
from cfn.nn.running_stats import RunningStats
from cfn.types import Array, NonNegativeFloat, Positive, PositiveFloat, State

TERMS = 32
"""Convolution outputs per projected feature. Dense projection would take ten times as long as everything else."""


class EllipticalBonus(Bonus):
    """B(s) = min(sqrt(phi' (ridge I + sum of phi phi')^-1 phi), 1), with phi frozen random features of unit norm.

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        seed: Seed of the features.
        device: Device of the convolutions.
        scale: Weight of the bonus in the reward (lambda of Eq. 1).
        normalize: Whether the reward is scale * (B - running mean) / running variance, as for the coin-flip bonus.
        features: Number of features; counts are exact while it exceeds the number of distinct states.
        ridge: Weight of the identity. A small one counts exactly; a larger one generalises more.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        scale: NonNegativeFloat = 0.01,
        normalize: bool = False,
        features: Positive = 2048,
        ridge: PositiveFloat = 1e-3,
    ) -> None:
        self.scale, self.normalize = scale, normalize
        self._check = ObservationCheck(observation_space)
        self.full_bytes = InverseGram.bytes_of(features)
        self._features = RandomFeatures(observation_space, features, seed, torch.device(device))
        self._inverse = InverseGram(features, ridge)
        self._bonus_stats = RunningStats()

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Count the visits, and return their scaled bonuses."""
        observations = self._check(observations)
        before = self._inverse.add(self._features(observations))
        novelty = np.sqrt(before / (1 + before))  # the current visit included
        rewards: Array = self.scale * (normalized(novelty, self._bonus_stats) if self.normalize else novelty)
        return rewards

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return B(s): 1 for a state unlike all visited ones."""
        novelty: Array = np.sqrt(np.minimum(self._inverse.forms(self._features(self._check(observations))), 1.0))
        return novelty

    def state_dict(self) -> dict[str, Any]:
        return {
            "features": self._features.state_dict(),
            "inverse": self._inverse.state_dict(),
            "bonus_moments": self._bonus_stats.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._features.load_state_dict(state["features"])
        self._inverse.load_state_dict(state["inverse"])
        self._bonus_stats.load_state_dict(state["bonus_moments"])


class RandomFeatures:
    """Frozen random features of unit norm.

    Args:
        space: Images or vectors.
        size: Number of features.
        seed: Seed of the weights.
        device: Device of the convolutions.
    """

    def __init__(self, space: gym.Space[Any], size: int, seed: int, device: torch.device) -> None:
        self._device = device
        self._body: torch.nn.Module = torch.nn.Identity()
        rng = seeding.generator(seed, "features")
        if shape := networks.image_shape(space):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                body, outputs = networks.convolutions(shape)
                self._body = networks.orthogonal(body).to(device)
            terms = min(TERMS, outputs)
            columns = np.stack([rng.choice(outputs, terms, replace=False) for _ in range(size)]).ravel()
            weights = rng.standard_normal(size * terms).astype(np.float32)
            rows = np.arange(0, size * terms + 1, terms)
            self._weights: Any = sparse.csr_matrix((weights, columns, rows), shape=(size, outputs))
            self._biases = np.zeros(size, np.float32)
        elif length := networks.vector_size(space):
            self._weights = rng.standard_normal((size, length)).astype(np.float32)
            self._biases = rng.standard_normal(size).astype(np.float32)
        else:
            raise networks.unsupported(space)

    def __call__(self, observations: Array) -> Array:
        """Return one row of features per observation."""
        with torch.inference_mode():
            outputs = self._body(networks.to_tensor(observations, self._device)).cpu().numpy()
        features = np.maximum((self._weights @ outputs.T).T + self._biases, 0.0)
        norms = np.linalg.norm(features, axis=1, keepdims=True)
        unit: Array = np.ascontiguousarray(features / np.maximum(norms, 1e-12), np.float32)
        return unit

    def state_dict(self) -> dict[str, Any]:
        is_sparse = sparse.issparse(self._weights)
        return {
            "body": self._body.state_dict(),
            "weights": self._weights.data if is_sparse else self._weights,
            "columns": self._weights.indices if is_sparse else np.zeros(0, np.int32),
            "biases": self._biases,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._body.load_state_dict(state["body"])
        if sparse.issparse(self._weights):
            if state["weights"].shape != self._weights.data.shape:
                raise ValueError("the projection has the wrong size for bonus.features")
            columns, outputs = state["columns"], self._weights.shape[1]
            if columns.shape != self._weights.indices.shape or not ((columns >= 0) & (columns < outputs)).all():
                raise ValueError("the projection reads outputs that do not exist")  # SciPy would not check them
            self._weights.data[:], self._weights.indices[:] = state["weights"], state["columns"]
        else:
            if state["weights"].shape != self._weights.shape:
                raise ValueError("the features have the wrong size for bonus.features")
            self._weights = state["weights"].copy()
        if state["biases"].shape != self._biases.shape:
            raise ValueError("the biases have the wrong size for bonus.features")
        self._biases = state["biases"].copy()
