"""Streams of visits with known counts: recorded from environments, or generated. States are numbered from 0."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from cfn.envs.gridworld import Gridworld
from cfn.envs.taxi import Taxi
from cfn.types import Array, State

Look = Callable[[int, np.random.Generator], Array]
"""Returns an observation of a state, which may differ from visit to visit."""

GRID, PIXELS = 12, 24
"""Cells and pixels per side of the gridworld of the exam."""
TAXI_PIXELS = 40
"""Pixels per side of the exam's Visual Taxi, 5x5."""
ONE_HOT = 200
"""Number of one-hot states."""
BLOBS, DIMENSIONS, SPREAD = 60, 8, 0.02
"""Number of blobs, their dimension, and the standard deviation of a blob, whose centres are in [-1, 1]."""


@dataclass(frozen=True)
class Stream:
    """Visits to numbered states, and the observations of these states.

    Attributes:
        name: Name in reports.
        space: Space of the observations.
        look: Function that returns an observation of a state.
        visits: Visited states, in order.
    """

    name: str
    space: gym.Space[Any]
    look: Look
    visits: Sequence[int]

    def counts(self) -> tuple[Array, Array]:
        """Return the visited states and the number of visits to each."""
        states, counts = np.unique(np.asarray(self.visits, np.int64), return_counts=True)
        return states, counts


def recorded(name: str, env: gym.Env[Any, Any], steps: int, rng: np.random.Generator) -> Stream:
    """Return the visits of a random policy; an environment's observations of a state must not vary."""
    numbers: dict[State, int] = {}
    observations: list[Array] = []
    visits: list[int] = []
    observation, info = env.reset(seed=int(rng.integers(2**31)))
    for _ in range(steps):
        number = numbers.setdefault(info["state"], len(numbers))
        if number == len(observations):
            observations.append(observation)
        visits.append(number)
        observation, _, terminated, truncated, info = env.step(int(rng.integers(env.action_space.n)))  # type: ignore[attr-defined]
        if terminated or truncated:
            observation, info = env.reset()
    return Stream(name, env.observation_space, lambda state, _: observations[state], visits)


def gridworld_walk(steps: int, rng: np.random.Generator) -> Stream:
    """Return a random walk in Visual Gridworld."""
    return recorded("gridworld", Gridworld(GRID, PIXELS, max_steps=6 * GRID), steps, rng)


def taxi_walk(steps: int, rng: np.random.Generator) -> Stream:
    """Return a random walk in Visual Taxi."""
    return recorded("taxi", Taxi(5, TAXI_PIXELS), steps, rng)


def zipf_one_hot(steps: int, rng: np.random.Generator) -> Stream:
    """Return visits to one-hot vectors; the k-th is visited in proportion to 1 / k."""
    shares = 1 / np.arange(1, ONE_HOT + 1)
    visits = rng.choice(ONE_HOT, size=steps, p=shares / shares.sum())
    states = np.eye(ONE_HOT, dtype=np.float32)
    space = gym.spaces.Box(0, 1, (ONE_HOT,), np.float32)
    return Stream("one-hot", space, lambda state, _: states[state], visits.tolist())


def blobs(steps: int, rng: np.random.Generator) -> Stream:
    """Return continuous vectors around fixed centres, with one state per centre; visits follow Zipf's law."""
    centres = rng.uniform(-1, 1, (BLOBS, DIMENSIONS))
    shares = 1 / np.arange(1, BLOBS + 1)
    visits = rng.choice(BLOBS, size=steps, p=shares / shares.sum())

    def look(state: int, noise: np.random.Generator) -> Array:
        observation: Array = (centres[state] + SPREAD * noise.standard_normal(DIMENSIONS)).astype(np.float32)
        return observation

    return Stream("blobs", gym.spaces.Box(-2, 2, (DIMENSIONS,), np.float32), look, visits.tolist())


def cells(name: str, visits: Sequence[int], noise: float = 0.0) -> Stream:
    """Return a stream of gridworld images: state k is an image whose k-th cell is white.

    Args:
        name: Name in reports.
        visits: Visited cells, in order.
        noise: Fraction of the image, at its bottom, whose pixels are random at every visit ("noisy TV"), rounded to
            rows of cells. The cells above it can be states.
    """
    side = PIXELS // GRID
    noisy_rows = rows_of_noise(noise) * side

    def look(state: int, rng: np.random.Generator) -> Array:
        row, column = divmod(state, GRID)
        image = np.zeros((PIXELS, PIXELS), np.uint8)
        image[row * side : (row + 1) * side, column * side : (column + 1) * side] = 255
        if noisy_rows:
            image[-noisy_rows:] = 255 * rng.integers(2, size=(noisy_rows, PIXELS), dtype=np.uint8)
        return image

    return Stream(name, gym.spaces.Box(0, 255, (PIXELS, PIXELS), np.uint8), look, visits)


def rows_of_noise(noise: float) -> int:
    """Return the number of rows of cells that a fraction of the image covers, at least one if there is noise."""
    return max(round(noise * GRID), 1) if noise > 0 else 0


def repeated(counts: Sequence[int], states: Sequence[int], rng: np.random.Generator) -> list[int]:
    """Return visits to states, each as often as its count says, in random order."""
    visits = np.repeat(states, counts)
    rng.shuffle(visits)
    return [int(visit) for visit in visits]
