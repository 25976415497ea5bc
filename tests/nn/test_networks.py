import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

from cfn.bonuses.coin_flip_network import coin_flip_net
from cfn.errors import UsageError
from cfn.nn import networks


@pytest.mark.parametrize("size", [84, 42, 28, 21, 13])
@pytest.mark.parametrize(("kernel", "stride"), [(8, 4), (4, 2), (3, 1)])
def test_same_padding_keeps_the_size_and_puts_the_odd_pixel_behind(size, kernel, stride):
    conv = networks.SameConv2d(1, 1, kernel, stride=stride)
    with torch.no_grad():
        conv.weight.fill_(1)
        conv.bias.zero_()
        image = torch.rand(1, 1, size, size, dtype=torch.float64)
        out = conv.double()(image)[0, 0]
    outputs = -(-size // stride)
    before = max((outputs - 1) * stride + kernel - size, 0) // 2
    padded = np.zeros((size + 2 * kernel, size + 2 * kernel))
    padded[before : before + size, before : before + size] = image[0, 0]
    plain = [
        [padded[r * stride : r * stride + kernel, c * stride : c * stride + kernel].sum() for c in range(outputs)]
        for r in range(outputs)
    ]
    assert out.numpy() == pytest.approx(np.array(plain))


def test_the_image_network_is_the_papers():
    net = coin_flip_net(gym.spaces.Box(0, 255, (84, 84), np.uint8), 20)
    shapes = [tuple(p.shape) for p in net.parameters() if p.ndim > 1]
    assert shapes == [(32, 1, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3), (20, 7744)]
    assert net(torch.zeros(3, 1, 84, 84)).shape == (3, 20)


def test_the_vector_network_is_the_papers():
    net = coin_flip_net(gym.spaces.Box(-1, 1, (28,), np.float64), 20)
    assert [tuple(p.shape) for p in net.parameters() if p.ndim > 1] == [(400, 28), (300, 400), (20, 300)]
    assert [m.negative_slope for m in net.modules() if isinstance(m, nn.LeakyReLU)] == [0.2, 0.2]


def test_weights_are_orthogonal_with_gain_and_biases_zero():
    net = coin_flip_net(gym.spaces.Box(-1, 1, (28,)), 20)
    for parameter in net.parameters():
        if parameter.ndim == 1:
            assert not parameter.any()
        else:
            short = min(parameter.shape)
            gram = parameter @ parameter.T if parameter.shape[0] == short else parameter.T @ parameter
            assert torch.allclose(gram, 2 * torch.eye(short), atol=1e-4)


def test_images_enter_between_0_and_1():
    tensor = networks.to_tensor(np.full((2, 4, 5), 255, np.uint8), torch.device("cpu"))
    assert tensor.shape == (2, 1, 4, 5)
    assert (tensor == 1).all()
    assert networks.to_tensor(np.zeros((2, 4, 5, 3), np.uint8), torch.device("cpu")).shape == (2, 3, 4, 5)


@pytest.mark.parametrize(
    "space", [gym.spaces.Discrete(3), gym.spaces.Box(0, 1, (3, 3)), gym.spaces.Box(0, 255, (3,), np.uint8)]
)
def test_other_observations_are_refused(space):
    with pytest.raises(UsageError, match="neither images"):
        coin_flip_net(space, 3)
