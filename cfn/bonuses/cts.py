"""Pseudo-counts of a CTS density model of images: the original pseudo-count (Bellemare et al., 2016).

The pseudo-count compares the probability rho of an image with its probability rho' once it has been learned:
N = rho (1 - rho') / (rho' - rho). It is computed from the prediction gain PG = log rho' - log rho, because the
probabilities of whole images underflow.

Departures: the published library is not available, and other implementations differ in details. Weights follow the
formula of the publication (Veness et al., 2012), where the mixing weight's two updates both use the old values; two
public implementations use the new value in the second. An image whose gain is not positive pays 0.
"""

import math
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.bonuses.base import Bonus
from cfn.bonuses.context_trees import LEVELS, ContextTrees, Gain
from cfn.bonuses.grey import require_images, small_grey, small_shape
from cfn.bonuses.inputs import ObservationCheck
from cfn.bonuses.visits import Visits
from cfn.types import Array, NonNegativeFloat, Positive, State

SMOOTHING = 0.01
"""Added to the pseudo-count, so that a new image pays at most 10 times the scale."""
MAX_GAIN = 700.0
"""Largest prediction gain whose exponential is finite."""


class CTSBonus(Bonus):
    """scale / sqrt(N + 0.01), with N the pseudo-count of the image before this visit.

    Args:
        observation_space: Images (uint8, height x width).
        scale: Weight of the bonus in the reward.
        side: Largest height and width of the images that are modelled, in pixels; larger images are averaged down.
    """

    def __init__(self, observation_space: gym.Space[Any], scale: NonNegativeFloat = 0.05, side: Positive = 42) -> None:
        self.scale, self._side = scale, side
        self._trees = ContextTrees(*small_shape(require_images("cts", observation_space), side))
        self._check = ObservationCheck(observation_space)

    def observe(self, observations: Array, visits: Visits | None = None) -> Array:
        """Learn each image in turn, and return the scaled bonuses."""
        return self.scale * self._bonuses(observations, learn=True)

    def novelty(self, observations: Array, states: Sequence[State] | None = None) -> Array:
        """Return (N + 0.01)^(-1/2) of each image."""
        return self._bonuses(observations, learn=False)

    def state_dict(self) -> dict[str, Any]:
        return self._trees.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._trees.load_state_dict(state)

    def _bonuses(self, observations: Array, learn: bool) -> Array:
        images = (small_grey(self._check(observations), self._side) * LEVELS / 256).astype(np.uint8)
        counts = np.array([pseudo_count(self._trees.gain(image, learn)) for image in images])
        bonuses: Array = (counts + SMOOTHING) ** -0.5
        return bonuses


def pseudo_count(gain: Gain) -> float:
    """Return the pseudo-count (1 - rho') / (rho' / rho - 1); infinity if the gain is not positive."""
    difference = min(gain.after - gain.before, MAX_GAIN)
    return -math.expm1(gain.after) / math.expm1(difference) if difference > 0 else math.inf
