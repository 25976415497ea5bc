"""A small environment with any observation space."""

import copy

import gymnasium as gym
import numpy as np


class Observing(gym.Env):
    """Samples its observations from a space; episodes end after `length` steps.

    Args:
        space: Observation space.
        actions: Action space.
        length: Steps per episode.
    """

    def __init__(self, space, actions=None, length=5, render_mode=None):
        self.observation_space = copy.deepcopy(space)  # each environment has its own random numbers
        self.action_space = actions or gym.spaces.Discrete(2)
        self.length, self.render_mode, self.steps = length, render_mode, 0
        self.last = None

    def _observe(self):
        self.last = self.observation_space.sample()
        return self.last

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.steps = 0
        return self._observe(), {}

    def step(self, action):
        self.steps += 1
        return self._observe(), 0.0, self.steps >= self.length, False, {}


class Mission(gym.Space):
    """Text in a space of its own, which Gymnasium cannot flatten."""

    def __init__(self):
        super().__init__(None, str)

    def sample(self, mask=None, probability=None):
        return "go to the goal"

    def contains(self, x):
        return isinstance(x, str)


def grid():
    """Observations as MiniGrid's: a direction, a small colour image, and text."""
    return gym.spaces.Dict(
        direction=gym.spaces.Discrete(4), image=gym.spaces.Box(0, 255, (7, 7, 3), np.uint8), mission=Mission()
    )
