"""SAC beside Stable-Baselines3's and beside plain PyTorch, and with the coin-flip bonus beside itself without."""

import gymnasium as gym
import numpy as np
import torch
from measuring import steps_per_second, told
from torch import nn
from torch.nn import functional

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


def ours(bench, with_bonus=False, compiled=False):
    env = Numbers()
    agent = SACAgent(
        env.observation_space,
        env.action_space,
        batch_size=BATCH,
        min_size=LEARNING_STARTS[bench.full],
        capacity=CAPACITY,
    )
    if compiled:
        agent.compile()
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


def layers(inputs, outputs):
    """A network with two hidden layers of 256."""
    return nn.Sequential(nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, outputs))


class PlainSAC:
    """SAC with tuned temperature in one file of plain PyTorch: one network per critic, the usual optimiser calls."""

    def __init__(self, observations, actions):
        self.actor = layers(observations, 2 * actions)
        self.critics, self.targets = ([layers(observations + actions, 1) for _ in range(2)] for _ in range(2))
        for critic, target in zip(self.critics, self.targets, strict=True):
            target.load_state_dict(critic.state_dict())
        self.log_alpha = torch.zeros(1, requires_grad=True)
        critic_parameters = [p for critic in self.critics for p in critic.parameters()]
        self.optimizers = [
            torch.optim.Adam(parameters, lr=3e-4)
            for parameters in (critic_parameters, list(self.actor.parameters()), [self.log_alpha])
        ]
        self.actions = actions

    def sample(self, observations):
        """Actions, and their log-densities."""
        mean, log_std = self.actor(observations).chunk(2, dim=1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-20, 2).exp())
        raw = normal.rsample()
        log_density = normal.log_prob(raw) - 2 * (np.log(2) - raw - functional.softplus(-2 * raw))
        return raw.tanh(), log_density.sum(1, keepdim=True)

    def act(self, observation):
        with torch.no_grad():
            return self.sample(torch.as_tensor(observation)[None])[0][0].numpy()

    def step(self, which, loss):
        self.optimizers[which].zero_grad()
        loss.backward()
        self.optimizers[which].step()

    def update(self, observations, actions, rewards, following, going_on):
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            next_actions, log_density = self.sample(following)
            inputs = torch.cat([following, next_actions], 1)
            value = torch.min(*(target(inputs) for target in self.targets)) - alpha * log_density
            goal = rewards + going_on * 0.99 * value
        inputs = torch.cat([observations, actions], 1)
        self.step(0, sum(functional.mse_loss(critic(inputs), goal) for critic in self.critics))
        new_actions, log_density = self.sample(observations)
        inputs = torch.cat([observations, new_actions], 1)
        self.step(1, (alpha * log_density - torch.min(*(critic(inputs) for critic in self.critics))).mean())
        self.step(2, -(self.log_alpha.exp() * (log_density.detach() - self.actions)).mean())
        with torch.no_grad():
            for critic, target in zip(self.critics, self.targets, strict=True):
                for ours, theirs in zip(critic.parameters(), target.parameters(), strict=True):
                    theirs.mul_(0.995).add_(ours, alpha=0.005)


def plain(bench):
    """The loop and the replay buffer as one would write them with PlainSAC."""
    env, rng = Numbers(), np.random.default_rng(0)
    agent, steps = PlainSAC(28, 4), 0
    observations, following = (np.zeros((CAPACITY, 28), np.float32) for _ in range(2))
    actions, rest = np.zeros((CAPACITY, 4), np.float32), np.zeros((CAPACITY, 2), np.float32)
    observation, _ = env.reset()

    def run(number):
        nonlocal steps, observation
        for _ in range(number):
            learning = steps >= LEARNING_STARTS[bench.full]
            action = agent.act(observation) if learning else env.action_space.sample()
            after, reward, terminated, truncated, _ = env.step(action)
            i = steps % CAPACITY
            observations[i], actions[i], rest[i], following[i] = observation, action, (reward, not terminated), after
            steps += 1
            if learning:
                rows = rng.integers(min(steps, CAPACITY), size=BATCH)
                rewards, going_on = torch.from_numpy(rest[rows]).split(1, dim=1)
                batch = (torch.from_numpy(array[rows]) for array in (observations, actions, following))
                first, second, third = batch
                agent.update(first, second, rewards, third, going_on)
            observation = env.reset()[0] if terminated or truncated else after

    return run


def rates_of(runs, bench):
    return steps_per_second(runs, *bench.size((60, 9), (3, 1)), warm_up=LEARNING_STARTS[bench.full] + bench.size(60, 2))


def test_sac_is_faster_than_stable_baselines3(threads, bench):
    runs = {
        "compiled": ours(bench, compiled=bench.full),  # compiling takes too long for a smoke test
        "eager": ours(bench),
        "plain PyTorch": plain(bench),
        "Stable-Baselines3": stable_baselines3(bench),
    }
    rates = rates_of(runs, bench)
    ratios = {name: rates[name] / rates["Stable-Baselines3"] for name in ("compiled", "eager")}
    bench.report(
        f"SAC, batch {BATCH}, an update each step, {threads} threads: steps per second: {told(rates)}; beside "
        f"Stable-Baselines3 {ratios['compiled']:.2f}x compiled, {ratios['eager']:.2f}x eager",
        **rates,
    )
    bench.require(ratios["eager"] >= 1.3)
    bench.require(ratios["compiled"] >= ratios["eager"])


def test_the_bonus_leaves_a_third_of_the_speed(threads, bench):
    """A coin-flip update of 1,024 vectors each step; the multiplications alone would leave 0.42."""
    rates = rates_of({"SAC": ours(bench), "SAC + CFN": ours(bench, with_bonus=True)}, bench)
    ratio = rates["SAC + CFN"] / rates["SAC"]
    bench.report(f"with {threads} threads: steps/s: {told(rates)}: {ratio:.2f}x", ratio=ratio)
    bench.require(ratio >= 0.35)
