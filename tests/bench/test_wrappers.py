"""Cost of a wrapper beside the environments and the bonus."""

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from measuring import steps_per_second, told

from cfn import BonusVectorWrapper, make_bonus


def cart_poles():
    return SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 4, autoreset_mode=AutoresetMode.SAME_STEP)


def small_bonus(envs):
    """A smaller and cheaper bonus than the paper's: the share of the wrapper is at most as large in real runs."""
    return make_bonus("cfn", envs.single_observation_space, min_size=100, batch_size=64, hidden=[128, 128], lr=1e-3)


def plain():
    envs = cart_poles()
    bonus = small_bonus(envs)
    observations, _ = envs.reset(seed=0)

    def run(steps):
        nonlocal observations
        for _ in range(steps):
            following, *_ = envs.step(np.ones(4, int))
            bonus.observe(observations)
            for _ in range(4):
                bonus.update()
            observations = following

    return run


def wrapped():
    envs = cart_poles()
    envs = BonusVectorWrapper(envs, small_bonus(envs))
    envs.reset(seed=0)

    def run(steps):
        for _ in range(steps):
            envs.step(np.ones(4, int))

    return run


def test_a_wrapper_takes_at_most_a_twentieth_of_a_step(bench):
    torch.set_num_threads(1)
    runs, sizes = {"plain": plain(), "wrapped": wrapped()}, bench.size((100, 15, 60), (2, 1, 30))
    rates = steps_per_second(runs, *sizes)
    bench.report(f"steps of 4 environments per second: {told(rates)}", **rates)
    bench.require(rates["wrapped"] > 0.95 * rates["plain"])
