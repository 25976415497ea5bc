"""An environment that takes its time, so that a test can interrupt a run in the middle on any machine."""

import time
from pathlib import Path

import gymnasium as gym
import numpy as np

QUICK_STEPS = 100
"""Steps of a process that take little time: enough for a first checkpoint."""
QUICK_SECONDS, SLOW_SECONDS = 0.05, 2.0
"""Seconds per step at first, and then: no run comes to its end while its test waits, and none needs long to stop."""


class Corridor(gym.Env):
    """A corridor with a reward at its end, in which steps are slow unless a file `hurry` exists."""

    observation_space = gym.spaces.Box(0, 1, (9,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.quick = QUICK_STEPS

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.steps = int(self.np_random.integers(3)), 0
        return self.look()

    def step(self, action):
        self.quick -= 1
        if not Path("hurry").exists():
            time.sleep(QUICK_SECONDS if self.quick >= 0 else SLOW_SECONDS)
        self.cell = min(max(self.cell + (1 if action == 1 else -1), 0), 8)
        self.steps += 1
        done = self.cell == 8
        observation, info = self.look()
        return observation, float(done), done, not done and self.steps >= 30, info

    def look(self):
        return np.eye(9, dtype=np.float32)[self.cell], {"state": (self.cell,)}


gym.register("patient-v0", Corridor)
