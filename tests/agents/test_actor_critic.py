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
