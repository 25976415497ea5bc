"""SAC beside Stable-Baselines3's, and with the coin-flip bonus beside itself without."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from measuring import steps_per_second, told

from cfn.agents.sac import SACAgent
from cfn.bonuses.coin_flip import CoinFlipBonus

BATCH, CAPACITY = 256, 100_000
LEARNING_STARTS = {True: 1_100, False: 10}
"""Random steps at first, at full size or not; more than one batch of the coin-flip bonus."""


class Numbers(gym.Env):
    """As large as Fetch's spaces, and costs nothing: rows of a table, one after another."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (28,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (4,), np.float32)

    def __init__(self):
        self._table = np.random.default_rng(0).normal(size=(50_000, 28)).astype(np.float32)
        self._row = 0

    def _next(self):
        self._row = (self._row + 1) % len(self._table)
        return self._table[self._row]

    def reset(self, *, seed=None, options=None):
        return self._next(), {}

    def step(self, action):
        return self._next(), 0.0, False, self._row % 50 == 0, {}


def ours(bench, with_bonus=False):
    env = Numbers()
    agent = SACAgent(
        env.observation_space,
        env.action_space,
        batch_size=BATCH,
        min_size=LEARNING_STARTS[bench.full],
        capacity=CAPACITY,
    )
    bonus = (
        CoinFlipBonus(env.observation_space, capacity=CAPACITY, min_size=LEARNING_STARTS[bench.full] - 5)
        if with_bonus
        else None
    )
    current = [env.reset()[0]]

    def run(steps):
        observation = current[0]
        for _ in range(steps):
            actions = agent.act(observation[None])
            following, reward, terminated, truncated, _ = env.step(actions[0])
            rewards = np.array([reward])
            if bonus is not None:
                rewards = rewards + bonus.observe(observation[None])
            ends = np.array([terminated]), np.array([truncated])
            agent.observe(observation[None], actions, rewards, following[None], *ends)
            agent.update()
            if bonus is not None:
                bonus.update()
            observation = env.reset()[0] if terminated or truncated else following
        current[0] = observation

    return run


def stable_baselines3(bench):
    from stable_baselines3 import SAC

    model = SAC(
        "MlpPolicy", Numbers(), buffer_size=CAPACITY, device="cpu", batch_size=BATCH,
        learning_starts=LEARNING_STARTS[bench.full], train_freq=1, gradient_steps=1, seed=0,
    )  # fmt: skip
    return lambda steps: model.learn(steps, reset_num_timesteps=False)


def rates_of(runs, bench):
    return steps_per_second(
        runs, *bench.size((100, 7), (3, 1)), warm_up=LEARNING_STARTS[bench.full] + bench.size(60, 2)
    )


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_sac_is_faster_than_stable_baselines3(threads, bench):
    rates = rates_of({"ours": ours(bench), "Stable-Baselines3": stable_baselines3(bench)}, bench)
    ratio = rates["ours"] / rates["Stable-Baselines3"]
    bench.report(
        f"SAC, batch {BATCH}, an update each step, {threads} threads: steps/s: {told(rates)}: {ratio:.2f}x", ratio=ratio
    )
    bench.require(ratio >= 1.3)


def test_the_bonus_leaves_a_third_of_the_speed(threads, bench):
    """A coin-flip update of 1,024 vectors each step; the multiplications alone would leave 0.42."""
    rates = rates_of({"SAC": ours(bench), "SAC + CFN": ours(bench, with_bonus=True)}, bench)
    ratio = rates["SAC + CFN"] / rates["SAC"]
    bench.report(f"with {threads} threads: steps/s: {told(rates)}: {ratio:.2f}x", ratio=ratio)
    bench.require(ratio >= 0.35)
