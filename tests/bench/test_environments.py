"""How fast the environments step, from Python, one at a time."""

import statistics
import time

import gymnasium as gym
import numpy as np
import pytest

import cfn.envs  # noqa: F401  # registers the ids

STEPS = 50_000


def steps_per_second(env):
    actions = np.random.default_rng(0).integers(4, size=STEPS).tolist()
    env.reset(seed=0)
    start = time.perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return STEPS / (time.perf_counter() - start)


@pytest.mark.bench
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_gridworld_is_cheap(noise):
    env = gym.make("cfn/Gridworld-v0", action_noise=noise, disable_env_checker=True)
    rate = statistics.median(steps_per_second(env) for _ in range(5))
    print(f"\n42x42 gridworld, 84x84 images, action noise {noise}: {rate:,.0f} steps per second")
    assert rate >= 100_000
