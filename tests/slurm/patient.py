"""An environment that takes its time, so that a test can interrupt a run in the middle on any machine."""

import time

import gymnasium as gym
import numpy as np


class Corridor(gym.Env):
    """A corridor with a reward at its end, at 100 steps per second or fewer."""

    observation_space = gym.spaces.Box(0, 1, (9,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.steps = int(self.np_random.integers(3)), 0
        return self.look()

    def step(self, action):
        time.sleep(0.01)
        self.cell = min(max(self.cell + (1 if action == 1 else -1), 0), 8)
        self.steps += 1
        done = self.cell == 8
        observation, info = self.look()
        return observation, float(done), done, not done and self.steps >= 30, info

    def look(self):
        return np.eye(9, dtype=np.float32)[self.cell], {"state": (self.cell,)}


gym.register("patient-v0", Corridor)
