import numpy as np
import pytest
import torch
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution
from torch.nn import functional

from cfn.agents.actor_critic import Actor, TwinCritic


@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
def test_densities_are_those_of_pytorchs_distributions(spread):
    torch.manual_seed(0)
    actor = Actor(5, 3, (16,)).double()
    with torch.no_grad():
        actor.net[-1].weight.mul_(spread)
    observations, noise = torch.randn(200, 5).double(), torch.randn(200, 3).double().clamp(-2, 2)
    actions, log_density = actor.sample(observations, noise)
    mean, log_std = actor(observations)
    plain = TransformedDistribution(Independent(Normal(mean, log_std.exp()), 1), [TanhTransform(cache_size=1)])
    assert log_density.detach().numpy() == pytest.approx(plain.log_prob(actions).detach().numpy(), abs=1e-5)
    assert (actions.abs() < 1).all()


def test_densities_are_finite_where_tanh_is_1():
    actor = Actor(1, 1, (4,))
    with torch.no_grad():
        actor.net[-1].bias[0] = 50
    actions, log_density = actor.sample(torch.zeros(1, 1), torch.zeros(1, 1))
    assert actions.item() == 1
    assert torch.isfinite(log_density).all()


@pytest.mark.parametrize(("clamp", "expected"), [(True, [2, -20]), (False, [5, -30])])
def test_the_standard_deviation_may_be_clamped(clamp, expected):
    actor = Actor(1, 2, (4,), clamp_log_std=clamp)
    with torch.no_grad():
        actor.net[-1].weight.zero_()
        actor.net[-1].bias.copy_(torch.tensor([0, 0, 5, -30]))
    assert actor(torch.ones(1, 1))[1].tolist() == [expected]


def test_glorots_weights_fill_their_range_and_biases_are_zero():
    """Uniform up to sqrt(6 / (inputs + outputs)): 0.2 for 50 + 100, 0.1 for 100 + 500, and the last layers'."""
    torch.manual_seed(0)
    actor, critic = Actor(50, 20, (100, 500), "glorot"), TwinCritic(50, (100, 500), "glorot")
    ranges = {50: 0.2, 100: 0.1}  # by inputs
    layers = [(layer.weight.T, layer.bias, (6 / 540) ** 0.5) for layer in actor.net if hasattr(layer, "weight")]
    for weights, biases in zip(critic.weights, critic.biases, strict=True):
        assert not torch.equal(weights[0], weights[1]), "each critic has its own"
        layers += [(weight, bias, (6 / 501) ** 0.5) for weight, bias in zip(weights, biases, strict=True)]
    assert len(layers) == 3 + 2 * 3
    for weight, bias, last in layers:
        bound = ranges.get(len(weight), last)
        assert 0.97 * bound < weight.abs().max() <= bound
        assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.05), "as of a uniform distribution"
        assert not bias.any()


def test_uniform_weights_are_pytorchs():
    torch.manual_seed(7)
    actor, critic = Actor(3, 2, (8,)), TwinCritic(5, (8,))
    torch.manual_seed(7)
    for layer in (actor.net[0], actor.net[2]):
        plain = torch.nn.Linear(layer.in_features, layer.out_features)
        assert torch.equal(layer.weight, plain.weight)
        assert torch.equal(layer.bias, plain.bias)
    for weights, biases in zip(critic.weights, critic.biases, strict=True):
        for weight, bias in zip(weights, biases, strict=True):
            plain = torch.nn.Linear(*weight.shape)
            assert torch.equal(weight, plain.weight.T)
            assert torch.equal(bias[0], plain.bias)


def test_each_critic_is_a_plain_network():
    torch.manual_seed(0)
    critic = TwinCritic(5, (7, 6))
    observations, actions = torch.randn(4, 3), torch.randn(4, 2)
    for which, values in enumerate(critic(observations, actions)):
        x = torch.cat([observations, actions], dim=1)
        for i, (weight, bias) in enumerate(zip(critic.weights, critic.biases, strict=True)):
            x = functional.linear(x, weight[which].T, bias[which, 0])
            x = functional.relu(x) if i < 2 else x
        assert values.detach().numpy() == pytest.approx(x[:, 0].detach().numpy(), abs=1e-6)
    assert not np.allclose(*critic(observations, actions).detach().numpy()), "they begin differently"
