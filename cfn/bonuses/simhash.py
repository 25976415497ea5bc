"""SimHash counts, "#Exploration" (Tang et al., 2017): visits per hash code, that is, per signs of random projections.

Images become grey, of at most 52 x 52 pixels, as in the paper's experiments on pixels; vectors are used as they are.
The counts are a dictionary of codes, so no two codes share a count.

Departure, unless `centre` is 0: the mean of the first states is subtracted before the projection. Pixels are positive,
so without it the projections of all images have the same large part and share most signs. The mean is fixed after
`centre` states, because a moving one would change the codes of states that were counted; the states until then are
counted again, with their new codes.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from cfn import seeding
from cfn.bonuses.base import Bonus
from cfn.bonuses.grey import small_grey, small_shape
from cfn.bonuses.inputs import ObservationCheck
from cfn.bonuses.visits import Visits
from cfn.nn import networks
from cfn.types import Array, NonNegative, NonNegativeFloat, Positive, State

SIDE = 52
"""Largest height and width of images, in pixels."""


class SimHashBonus(Bonus):
    """scale / sqrt(n(c)), with n(c) the number of visits to states with the hash code c, including this one.

    Args:
        observation_space: Images (uint8, height x width) or vectors.
        seed: Seed of the projection.
        scale: Weight of the bonus in the reward; the paper's 0.01 is for 256 bits, and 0.01 * 256 / `bits` for others.
        bits: Length of a hash code; more bits distinguish more states.
        centre: Number of first states whose mean is subtracted; 0: none, as published.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        seed: int = 0,
        scale: NonNegativeFloat = 0.01,
        bits: Positive = 256,
        centre: NonNegative = 1000,
    ) -> None:
        if shape := networks.image_shape(observation_space):
            height, width = small_shape(shape, SIDE)
            size = height * width
        elif (length := networks.vector_size(observation_space)) is not None:
            size = length
        else:
            raise networks.unsupported(observation_space)
        self.scale, self._to_centre, self._check = scale, centre, ObservationCheck(observation_space)
        self._projection = seeding.generator(seed, "simhash").standard_normal((size, bits), np.float32)
        self._mean = np.zeros(size, np.float32)
        self._first: list[Array] | None = [] if centre else None  # states so far, until the mean is fixed
        self._counts: dict[bytes, int] = {}

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Count the visits, and return their scaled bonuses."""
        inputs = _inputs(self._check(observations))
        rewards = []
        for code in self._codes(inputs):
            self._counts[code] = self._counts.get(code, 0) + 1
            rewards.append(self.scale * self._counts[code] ** -0.5)
        if self._first is not None:
            self._first.extend(inputs)
            if len(self._first) >= self._to_centre:
                self._fix_mean(np.stack(self._first))
        return np.array(rewards)

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return 1 / sqrt(n(c)); a code without visits counts as visited once."""
        codes = self._codes(_inputs(self._check(observations)))
        return np.array([max(self._counts.get(code, 0), 1) for code in codes]) ** -0.5

    def state_dict(self) -> dict[str, Any]:
        return {
            "projection": self._projection,
            "mean": self._mean,
            "first": None if self._first is None else np.array(self._first),
            "codes": np.frombuffer(b"".join(self._counts), np.uint8),
            "counts": np.array(list(self._counts.values())),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["projection"].shape != self._projection.shape:
            raise ValueError("the projection has another shape")
        self._projection, self._mean = state["projection"].copy(), state["mean"].copy()
        self._first = None if state["first"] is None else list(state["first"])
        length = -(-self._projection.shape[1] // 8)
        codes = map(bytes, state["codes"].reshape(-1, length))
        self._counts = dict(zip(codes, state["counts"].tolist(), strict=True))

    def _codes(self, inputs: Array) -> list[bytes]:
        signs = (inputs - self._mean) @ self._projection > 0
        return [code.tobytes() for code in np.packbits(signs, axis=1)]

    def _fix_mean(self, first: Array) -> None:
        """Set the mean of the first states, and count these again."""
        self._mean = first.mean(axis=0, dtype=np.float64).astype(np.float32)
        self._counts, self._first = {}, None
        for code in self._codes(first):
            self._counts[code] = self._counts.get(code, 0) + 1


def _inputs(observations: Array) -> Array:
    """Return one row of numbers per observation."""
    floats = small_grey(observations, SIDE) / 255 if observations.dtype == np.uint8 else observations
    rows: Array = floats.reshape(len(observations), -1).astype(np.float32)
    return rows
