"""SAC: what it learns from, what it learns, how it acts."""

import copy
import math

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
    targets = agent._targets(states, rewards, discounts, temperature, agent._noise(50))
    for i in range(50):
        with torch.no_grad():
            action, log_density = agent._actor.sample(states[[i]], noise[[i]])
            one, two = agent._target(states[[i]], action)[:, 0].tolist()
        plain = rewards[i].item() + discounts[i].item() * (min(one, two) - 0.3 * log_density.item())
        assert targets[i].item() == pytest.approx(plain, abs=1e-5)


def one_neuron(layers):
    """Return a perceptron with one hidden neuron as a plain function: its layers are (weights, biases)."""
    (first, first_bias), (second, second_bias) = layers
    return lambda inputs: [
        w * max(sum(v * x for v, x in zip(first, inputs, strict=True)) + first_bias, 0) + b
        for w, b in zip(second, second_bias, strict=True)
    ]


@pytest.mark.parametrize("which_target", ["dopamine", "standard"])
def test_targets_by_hand(which_target):
    """Dopamine: Q of the target actor's mean action, entropy of its sample. Standard: the actor's sample for both.

    The other networks play no part.
    """
    actor_layers = (([0.5, -1.0], 0.2), ([0.8, -0.6], [-0.1, -0.4]))  # to mean and log standard deviation
    critic_layers = [(([1.0, 0.5, 2.0], 0.3), ([1.5], [-0.7])), (([-0.5, 1.0, 1.0], 1.1), ([2.0], [0.4]))]
    observations, actions = gym.spaces.Box(-9, 9, (2,), np.float32), gym.spaces.Box(-1, 1, (1,), np.float32)
    agent = SACAgent(observations, actions, target=which_target, **{**SMALL, "hidden": (1,)})
    with torch.no_grad():
        for net in agent.networks:
            for parameter in net.parameters():
                parameter.fill_(50)
        (first, first_bias), (second, second_bias) = actor_layers
        actor = agent._actor if which_target == "standard" else agent._target_actor
        for parameter, values in zip(actor.parameters(), (first, [first_bias], second, second_bias), strict=True):
            parameter.copy_(torch.tensor(values).view_as(parameter))
        for which, ((first, first_bias), (second, second_bias)) in enumerate(critic_layers):
            for parameter, values in zip(
                agent._target.parameters(), (first, second, [first_bias], second_bias), strict=True
            ):
                parameter[which].copy_(torch.tensor(values).view_as(parameter[which]))
    noise = torch.randn((3, 1), generator=torch.Generator().set_state(agent._noise_rng.get_state()))[:, 0].tolist()
    states, rewards, discounts = [[1.0, 0.5], [-2.0, -1.5], [3.0, 0.0]], [1.0, 0.5, -2.0], [0.9, 0.0, 0.5]
    tensors = (torch.tensor(column) for column in (states, rewards, discounts, 0.3))
    targets, smaller = agent._targets(*tensors, agent._noise(3)).tolist(), []
    for state, reward, discount, z, target in zip(states, rewards, discounts, noise, targets, strict=True):
        mean, log_std = one_neuron(actor_layers)(state)
        sample = math.tanh(mean + math.exp(log_std) * z)
        density = math.exp(-(z**2) / 2) / (math.exp(log_std) * math.sqrt(2 * math.pi)) / (1 - sample**2)
        action = sample if which_target == "standard" else math.tanh(mean)
        values = [one_neuron(layers)([*state, action])[0] for layers in critic_layers]
        smaller.append(values.index(min(values)))
        assert target == pytest.approx(reward + discount * (min(values) - 0.3 * math.log(density)), abs=1e-4)
    assert set(smaller) == {0, 1}, "each critic is the smaller one somewhere"


def test_the_target_actor_follows_the_actor():
    """From w0, with tau 1/4, by two updates: 3/4 (3/4 w0 + 1/4 w1) + 1/4 w2."""
    agent = walk(SACAgent(VECTOR, ACTIONS, target="dopamine", tau=0.25, **{**SMALL, "min_size": 40}), 39)
    agent._steps = 40
    weights = [[p.detach().clone() for p in agent._actor.parameters()]]
    for _ in range(2):
        agent.update()
        weights.append([p.detach().clone() for p in agent._actor.parameters()])
    for w0, w1, w2, ours in zip(*weights, agent._target_actor.parameters(), strict=True):
        assert ours.numpy() == pytest.approx((0.5625 * w0 + 0.1875 * w1 + 0.25 * w2).numpy(), abs=1e-6)
        assert not torch.equal(w0, w1)
        assert ours.grad is None


@pytest.mark.parametrize(("target", "count"), [("standard", 3), ("dopamine", 4)])
def test_only_dopamines_target_has_a_target_actor(target, count):
    agent = SACAgent(VECTOR, ACTIONS, target=target, **SMALL)
    assert len(agent.networks) == len(set(agent.networks)) == count
    assert ("target_actor" in agent.state_dict()) == (target == "dopamine")


@pytest.mark.parametrize("target", ["standard", "dopamine"])
def test_the_networks_begin_as_requested(target):
    agent = SACAgent(VECTOR, ACTIONS, target=target, init="glorot", clamp_log_std=False, **SMALL)
    biases = [p for net in agent.networks for name, p in net.named_parameters() if "bias" in name]
    assert len(biases) == 3 * len(agent.networks)
    assert not any(bias.any() for bias in biases)
    with torch.no_grad():
        agent._actor.net[-1].bias[2:] = 30
    assert agent._actor(torch.zeros(1, 3))[1].tolist() == [[30, 30]]


@pytest.mark.parametrize(
    ("n_step", "keep", "expected"),
    [
        (3, True, {(0, 3, 0.125), (1, 6, 0.125), (2, 12, 0.125), (3, 16, 0.25), (4, 16, 0.5)}),
        (3, False, {(0, 3, 0.125), (1, 6, 0.125), (2, 12, 0.125)}),
        (1, False, {(0, 1, 0.5), (1, 2, 0.5), (2, 4, 0.5), (3, 8, 0.5), (4, 16, 0.5)}),
    ],
)
@pytest.mark.parametrize("by", ["truncation", "termination", "interruption"])
def test_windows_cut_short_by_a_truncation_are_kept_or_not(n_step, keep, expected, by):
    """Rewards 1, 2, 4, 8, 16 and gamma 1/2: each reward counts as much as the first."""
    agent = SACAgent(VECTOR, ACTIONS, n_step=n_step, gamma=0.5, keep_cut_windows=keep, **SMALL)
    looks = [np.full((1, 3), t / 10, np.float32) for t in range(6)]
    for t in range(5):
        last = t == 4
        ended, truncated = np.array([last and by == "termination"]), np.array([last and by == "truncation"])
        agent.observe(looks[t], np.zeros((1, 2)), np.array([2.0**t]), looks[t + 1], ended, truncated)
    if by == "interruption":
        agent.cut(np.array([True]))
    batch = agent._replay.sample(200, np.random.default_rng(0))
    columns = ((batch.states[:, 0] * 10).round(), batch.rewards, batch.discounts)
    found = set(zip(*(column.tolist() for column in columns), strict=True))
    if by == "termination":  # all windows are kept; those that contain the last step have no value to bootstrap
        expected = {(t, min(n_step, 5 - t) * 2**t, 0 if t + n_step >= 5 else 0.5**n_step) for t in range(5)}
    assert found == expected


def test_actor_and_critics_do_not_learn_each_others_lessons():
    """The critics' gradient is that of their own loss; and it moves no actor."""
    agent = walk(SACAgent(VECTOR, ACTIONS, **{**SMALL, "min_size": 40}), 39)
    agent._steps = 40
    before = copy.deepcopy(agent)
    agent.update()
    batch = before._replay.sample(16, before._sample_rng)
    states, after = map(torch.from_numpy, (batch.states, batch.next_states))
    actions, rewards, discounts = map(torch.from_numpy, (batch.actions, batch.rewards, batch.discounts))
    target = before._targets(after, rewards, discounts, torch.ones(()), before._noise(16))
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


@pytest.mark.thorough
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


@pytest.mark.parametrize(
    "keys",
    [{}, {"target": "dopamine"}, {"init": "glorot"}, {"clamp_log_std": False}, {"keep_cut_windows": False}],
    ids=lambda keys: "".join(keys) or "defaults",
)
def test_its_state_can_be_saved(keys):
    one, other = (SACAgent(VECTOR, ACTIONS, seed=seed, num_envs=2, **SMALL, **keys) for seed in (1, 2))
    walk(one, 40, num_envs=2)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for agent in (one, other):
        walk(agent, 30, num_envs=2, seed=9)
    for ours, theirs in zip(one.networks, other.networks, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))
    for name, stored in one._replay.state_dict().items():
        assert name == "frames" or np.array_equal(stored, other._replay.state_dict()[name])
    assert torch.equal(one._log_temperature, other._log_temperature)
    assert one.act(np.zeros((1, 3), np.float32)).tolist() == other.act(np.zeros((1, 3), np.float32)).tolist()


@pytest.mark.parametrize(
    ("observations", "actions", "message"),
    [
        (gym.spaces.Box(0, 255, (8, 8), np.uint8), ACTIONS, "use agent=rainbow for images"),
        (VECTOR, gym.spaces.Discrete(3), "use agent=rainbow"),
        (VECTOR, gym.spaces.Box(-np.inf, np.inf, (2,)), "has infinite bounds"),
    ],
)
def test_what_it_cannot_do_is_refused(observations, actions, message):
    with pytest.raises(UsageError, match=message):
        SACAgent(observations, actions, **SMALL)


def test_a_buffer_holds_a_batch():
    with pytest.raises(BadValueError) as caught:
        SACAgent(VECTOR, ACTIONS, **{**SMALL, "capacity": 8})
    assert caught.value.key == "capacity"
