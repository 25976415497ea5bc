"""Rainbow beside the other PyTorch implementations of its family: one network, one batch, one update ratio for all."""

import statistics
import time

import gymnasium as gym
import numpy as np
import pytest
import torch
from measuring import steps_per_second, told
from torch import nn

from cfn.agents.rainbow import RainbowAgent
from cfn.envs.gridworld import Gridworld
from cfn.nn import networks

CAPACITY, ATOMS, ACTIONS = 20_000, 51, 4
BATCH, LEARNING_STARTS = {True: 32, False: 2}, {True: 200, False: 8}
"""Sizes, at full size or not."""


def body():
    """The Nature network up to its hidden layer, as one would write it in PyTorch."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 8, stride=4, padding=2), nn.ReLU(),
        nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(7744, 512), nn.ReLU(),
    )  # fmt: skip


def ours(period, full, compiled=False):
    env = Gridworld()
    agent = RainbowAgent(
        env.observation_space, env.action_space, batch_size=BATCH[full], min_size=LEARNING_STARTS[full],
        capacity=CAPACITY, update_period=period, atoms=ATOMS, epsilon_decay=0,
    )  # fmt: skip
    if compiled:
        agent.compile()
    state = [env.reset(seed=0)[0], 0]

    def run(steps):
        observation, taken = state
        for _ in range(steps):
            actions = agent.act(observation[None])
            following, reward, terminated, truncated, _ = env.step(int(actions[0]))
            ends = np.array([terminated]), np.array([truncated])
            agent.observe(observation[None], actions, np.array([reward]), following[None], *ends)
            taken += 1
            if taken % period == 0:
                agent.update()
            observation = env.reset()[0] if terminated or truncated else following
        state[:] = observation, taken

    return run


def stable_baselines3(period, full):
    from stable_baselines3 import DQN
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class Extractor(BaseFeaturesExtractor):
        def __init__(self, space):
            super().__init__(space, 512)
            self.body = body()

        def forward(self, observations):
            return self.body(observations)

    model = DQN(
        "CnnPolicy", gym.wrappers.ReshapeObservation(Gridworld(), (84, 84, 1)), buffer_size=CAPACITY, device="cpu",
        learning_starts=LEARNING_STARTS[full], batch_size=BATCH[full], train_freq=period, gradient_steps=1,
        target_update_interval=500, exploration_final_eps=0.001, exploration_fraction=1e-4, seed=0,
        policy_kwargs={"features_extractor_class": Extractor, "net_arch": []},
    )  # fmt: skip
    return lambda steps: model.learn(steps, reset_num_timesteps=False)


def tianshou(period, full):
    from tianshou.algorithm import RainbowDQN
    from tianshou.algorithm.modelfree.c51 import C51Policy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, PrioritizedVectorReplayBuffer
    from tianshou.env import DummyVectorEnv
    from tianshou.utils.torch_utils import policy_within_training_step

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(body(), nn.Linear(512, ACTIONS * ATOMS))

        def forward(self, obs, state=None, info=None):
            images = torch.as_tensor(obs, dtype=torch.float32) / 255
            return self.layers(images).view(-1, ACTIONS, ATOMS).softmax(dim=2), state

    envs = DummyVectorEnv([lambda: gym.wrappers.ReshapeObservation(Gridworld(), (1, 84, 84))])
    space = gym.spaces.Box(0, 255, (1, 84, 84), np.uint8)
    policy = C51Policy(Net(), gym.spaces.Discrete(ACTIONS), space, num_atoms=ATOMS, eps_training=0.001)
    algorithm = RainbowDQN(
        policy=policy, optim=AdamOptimizerFactory(lr=1.25e-4), n_step_return_horizon=3, target_update_freq=500
    )
    buffer = PrioritizedVectorReplayBuffer(CAPACITY, 1, alpha=0.5, beta=0.5)
    collector = Collector(algorithm, envs, buffer)
    collector.reset()

    def run(steps):
        for _ in range(0, steps, period):
            with policy_within_training_step(policy):
                collector.collect(n_step=period)
                if len(buffer) >= LEARNING_STARTS[full]:
                    algorithm.update(buffer=buffer, sample_size=BATCH[full])

    return run


@pytest.mark.parametrize("period", [1, 4])
def test_no_other_is_faster(period, threads, bench):
    """Acting and learning in Visual Gridworld (84x84 images); all take turns, so that a slow moment falls on all."""
    torch.manual_seed(0)
    runs = {
        "compiled": ours(period, bench.full, compiled=bench.full),  # compiling takes too long for a smoke test
        "eager": ours(period, bench.full),
        "Stable-Baselines3 DQN": stable_baselines3(period, bench.full),
        "Tianshou": tianshou(period, bench.full),
    }
    rates = steps_per_second(
        runs, *bench.size((40, 7), (8, 1)), warm_up=LEARNING_STARTS[bench.full] + bench.size(40, 4)
    )
    ratios = {
        f"{ours} / {theirs}": rates[ours] / rates[theirs]
        for ours in ("compiled", "eager")
        for theirs in ("Stable-Baselines3 DQN", "Tianshou")
    }
    bench.report(
        f"Rainbow, 84x84 images, batch {BATCH[bench.full]}, an update every {period}, {threads} threads: "
        f"steps per second: {told(rates)}; {', '.join(f'{name} {ratio:.2f}x' for name, ratio in ratios.items())}",
        **rates,
    )
    bench.require(min(ratios.values()) >= 1)


def test_acting_costs_little_beyond_the_network(bench):
    env = Gridworld()
    agent = RainbowAgent(env.observation_space, env.action_space, eval_epsilon=0)
    observation = env.reset(seed=0)[0][None]
    tensor = networks.to_tensor(observation, torch.device("cpu"))
    times = {"act": [], "forward": []}
    with torch.no_grad():
        for _ in range(bench.size(300, 3)):
            for name, call in (
                ("act", lambda: agent.act(observation, explore=False)),
                ("forward", lambda: agent._net(tensor)),
            ):
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    act, forward = (statistics.median(times[name]) for name in ("act", "forward"))
    bench.report(f"acting {act * 1e3:.2f} ms, of which the network {forward * 1e3:.2f} ms", act=act, forward=forward)
    bench.require(act - forward <= 1e-3)
