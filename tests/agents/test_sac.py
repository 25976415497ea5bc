"""SAC: what it learns from, what it learns, how it acts."""

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch

from cfn.agents.sac import SACAgent
from cfn.errors import BadValueError, UsageError

VECTOR = gym.spaces.Box(-1, 1, (3,), np.float32)
ACTIONS = gym.spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))
SMALL = {"capacity": 500, "min_size": 20, "batch_size": 16, "hidden": (16, 16)}


def walk(agent, steps, num_envs=1, seed=0):
    """Random observations, rewards and ends."""
    rng = np.random.default_rng(seed)
    observations = rng.uniform(-1, 1, (num_envs, 3)).astype(np.float32)
    for _ in range(steps):
        actions, after = agent.act(observations), rng.uniform(-1, 1, (num_envs, 3)).astype(np.float32)
        ends = rng.random(num_envs)
        terminated, truncated = ends < 0.1, ends > 0.9
        agent.observe(observations, actions, rng.normal(size=num_envs), after, terminated, truncated)
        agent.update()
        fresh = rng.uniform(-1, 1, (num_envs, 3)).astype(np.float32)
        observations = np.where((terminated | truncated)[:, None], fresh, after)
    return agent


def test_actions_fill_their_bounds_at_random_before_learning_begins():
    agent = SACAgent(VECTOR, ACTIONS, **SMALL)
    actions = agent.act(np.zeros((2000, 3), np.float32))
    assert actions.dtype == np.float32
    assert actions.min(axis=0) == pytest.approx([-2, 0], abs=0.02)
    assert actions.max(axis=0) == pytest.approx([2, 10], abs=0.05)
    assert actions.mean(axis=0) == pytest.approx([0, 5], abs=0.3)


def test_evaluations_take_the_mean_and_leave_training_untouched():
    once, twice = (walk(SACAgent(VECTOR, ACTIONS, **SMALL), 40) for _ in range(2))
    looks = np.zeros((5, 3), np.float32)
    assert len(np.unique(once.act(looks, explore=False), axis=0)) == 1
    assert len(np.unique(copy.deepcopy(once).act(looks), axis=0)) == 5
    walk(once, 20), walk(twice, 20)
    assert all(torch.equal(a, b) for a, b in zip(once._critic.parameters(), twice._critic.parameters(), strict=True))


def test_the_replay_has_squashed_actions_and_scaled_rewards():
    agent = SACAgent(VECTOR, ACTIONS, reward_scale=30, n_step=1, **SMALL)
    look, no, yes = np.zeros((1, 3), np.float32), np.array([False]), np.array([True])
    agent.observe(look, np.array([[1, 10]], np.float32), np.array([0.5]), look, no, yes)
    batch = agent._replay.sample(1, np.random.default_rng(0))
    assert batch.actions.tolist() == [[0.5, 1]]
    assert (batch.rewards.item(), batch.discounts.item()) == (15, pytest.approx(0.99))


def test_a_number_of_an_action_that_cannot_vary_does_no_harm():
    fixed = gym.spaces.Box(np.array([-2.0, 3.0], np.float32), np.array([2.0, 3.0], np.float32))
    agent = walk(SACAgent(VECTOR, fixed, **SMALL), 60)
    assert (agent.act(np.zeros((5, 3), np.float32))[:, 1] == 3).all()
    assert all(torch.isfinite(parameter).all() for parameter in agent._critic.parameters())


def test_targets_equal_a_plain_loop():
    """r + ... + discount * (min Q - temperature * log pi), one transition after another, with ends of both kinds."""
    agent = walk(SACAgent(VECTOR, ACTIONS, n_step=3, **SMALL), 60)
    batch = agent._replay.sample(50, np.random.default_rng(0))
    assert set(batch.discounts.round(5).tolist()) == set(np.float32([0, 0.99, 0.99**2, 0.99**3]).round(5).tolist())
    temperature = torch.tensor(0.3)
    noise = torch.randn((50, 2), generator=torch.Generator().set_state(agent._noise_rng.get_state()))
    states, rewards, discounts = map(torch.from_numpy, (batch.next_states, batch.rewards, batch.discounts))
    targets = agent._targets(states, rewards, discounts, temperature)
    for i in range(50):
        with torch.no_grad():
            action, log_density = agent._actor.sample(states[[i]], noise[[i]])
            one, two = agent._target(states[[i]], action)[:, 0].tolist()
        plain = rewards[i].item() + discounts[i].item() * (min(one, two) - 0.3 * log_density.item())
        assert targets[i].item() == pytest.approx(plain, abs=1e-5)


def test_actor_and_critics_do_not_learn_each_others_lessons():
    """The critics' gradient is that of their own loss; and it moves no actor."""
    agent = walk(SACAgent(VECTOR, ACTIONS, **{**SMALL, "min_size": 40}), 39)
    agent._steps = 40
    before = copy.deepcopy(agent)
    agent.update()
    batch = before._replay.sample(16, before._sample_rng)
    states, after = map(torch.from_numpy, (batch.states, batch.next_states))
    actions, rewards, discounts = map(torch.from_numpy, (batch.actions, batch.rewards, batch.discounts))
    target = before._targets(after, rewards, discounts, torch.ones(()))
    loss = (before._critic(states, actions) - target).square().mean(dim=1).sum()
    loss.backward()
    for ours, plain in zip(agent._critic.parameters(), before._critic.parameters(), strict=True):
        assert ours.grad.numpy() == pytest.approx(plain.grad.numpy(), abs=1e-6)
    assert all(p.grad is None for p in before._actor.parameters())
    for ours, old, now in zip(
        agent._target.parameters(), before._target.parameters(), agent._critic.parameters(), strict=True
    ):
        assert ours.detach().numpy() == pytest.approx((0.995 * old + 0.005 * now).detach().numpy(), abs=1e-6)


@pytest.mark.parametrize(("log_std", "falls"), [(-0.2, True), (-8.0, False)])
def test_the_temperature_falls_when_there_is_entropy_enough(log_std, falls):
    agent = walk(SACAgent(VECTOR, ACTIONS, **{**SMALL, "min_size": 30}), 29)
    with torch.no_grad():
        agent._actor.net[-1].weight.zero_()
        agent._actor.net[-1].bias.copy_(torch.tensor([0, 0, log_std, log_std]))
    agent._steps = 30
    agent.update()
    assert (agent._log_temperature.item() < 0) == falls


def test_it_learns_which_action_pays():
    """One state, reward -(a - 0.5)^2, every episode one step long."""
    agent = SACAgent(
        VECTOR, gym.spaces.Box(-1, 1, (1,)), n_step=1, lr=3e-3, **{**SMALL, "min_size": 100, "batch_size": 64}
    )
    look, no, yes = np.zeros((1, 3), np.float32), np.array([False]), np.array([True])
    for _ in range(900):
        action = agent.act(look)
        agent.observe(look, action, -10 * (action[:, 0] - 0.5) ** 2, look, yes, no)
        agent.update()
    assert agent.act(look, explore=False)[0, 0] == pytest.approx(0.5, abs=0.1)


def test_its_state_can_be_saved():
    one, other = (SACAgent(VECTOR, ACTIONS, seed=seed, num_envs=2, **SMALL) for seed in (1, 2))
    walk(one, 40, num_envs=2)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for agent in (one, other):
        walk(agent, 30, num_envs=2, seed=9)
    for name in ("_actor", "_critic", "_target"):
        pairs = zip(getattr(one, name).parameters(), getattr(other, name).parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    assert torch.equal(one._log_temperature, other._log_temperature)
    assert one.act(np.zeros((1, 3), np.float32)).tolist() == other.act(np.zeros((1, 3), np.float32)).tolist()


@pytest.mark.parametrize(
    ("observations", "actions", "message"),
    [
        (gym.spaces.Box(0, 255, (8, 8), np.uint8), ACTIONS, "use agent=rainbow, which takes images"),
        (VECTOR, gym.spaces.Discrete(3), "use agent=rainbow"),
        (VECTOR, gym.spaces.Box(-np.inf, np.inf, (2,)), "has none"),
    ],
)
def test_what_it_cannot_do_is_refused(observations, actions, message):
    with pytest.raises(UsageError, match=message):
        SACAgent(observations, actions, **SMALL)


def test_a_buffer_holds_a_batch():
    with pytest.raises(BadValueError) as caught:
        SACAgent(VECTOR, ACTIONS, **{**SMALL, "capacity": 8})
    assert caught.value.key == "capacity"
