import gymnasium as gym
import numpy as np
import pytest
import torch
from torch.nn import functional

from cfn.agents.q_network import NoisyLinear, QNetwork

IMAGE = gym.spaces.Box(0, 255, (84, 84, 4), np.uint8)
VECTOR = gym.spaces.Box(-1, 1, (3,), np.float32)


def test_noise_is_the_outer_product_of_what_inputs_and_outputs_drew():
    layer = NoisyLinear(5, 3)
    layer.redraw(torch.Generator().manual_seed(0))
    inputs = torch.randn(4, 5)
    weight = layer.weight + layer.sigma * torch.outer(layer.noise_out, layer.noise_in)
    bias = layer.bias + layer.bias_sigma * layer.noise_out
    assert layer(inputs).detach().numpy() == pytest.approx(
        functional.linear(inputs, weight, bias).detach().numpy(), abs=1e-6
    )
    layer.noise_on = False
    assert torch.equal(layer(inputs), functional.linear(inputs, layer.weight, layer.bias))


def test_noise_begins_as_its_paper_has_it():
    torch.manual_seed(0)
    net = QNetwork(VECTOR, 2, 5, hidden=(400,), noisy=True)
    first, second = net.noisy_layers
    for layer, inputs in ((first, 3), (second, 400)):
        assert layer.sigma.detach().numpy() == pytest.approx(0.5 / np.sqrt(inputs))
        assert layer.weight.abs().max() <= 1 / np.sqrt(inputs)
        assert layer.bias.abs().max() > 0
    drawn = torch.cat([layer.noise_in for layer in net.noisy_layers])
    assert not drawn.any(), "until it is drawn"
    second.redraw(torch.Generator().manual_seed(0))
    root = second.noise_in.sign() * second.noise_in.square()  # undoes sign(x) sqrt(|x|)
    assert float(root.std()) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("space", [IMAGE, VECTOR], ids=["images", "vectors"])
def test_dueling_streams_are_a_value_and_advantages_of_mean_0(space):
    torch.manual_seed(0)
    net = QNetwork(space, 4, 7, hidden=(16,), dueling=True)
    inputs = torch.rand(2, 4, 84, 84) if space is IMAGE else torch.rand(2, 3)
    features = net.body(inputs)
    values, advantages = net.values(features), net.advantages(features).view(2, 4, 7)
    logits = net(inputs)
    assert torch.allclose(logits, values[:, None] + advantages - advantages.mean(1, keepdim=True))
    assert torch.allclose(logits.mean(dim=1), values, atol=1e-6)


def test_images_go_through_the_nature_network():
    net = QNetwork(IMAGE, 4, 51)
    shapes = [tuple(p.shape) for p in net.parameters() if p.dim() > 1]
    assert shapes == [(32, 4, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3), (512, 7744), (204, 512)]
    assert net(torch.rand(3, 4, 84, 84)).shape == (3, 4, 51)


def test_every_hidden_layer_is_there():
    shapes = [tuple(p.shape) for p in QNetwork(VECTOR, 2, 5, hidden=(8, 6)).parameters() if p.dim() > 1]
    assert shapes == [(8, 3), (6, 8), (10, 6)]
