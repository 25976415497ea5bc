import numpy as np
import pytest
import torch
from torch import nn

from cfn.bonuses.pixelcnn_network import LEVELS, MaskedConv2d, PixelCNN

GATES = pytest.mark.parametrize("gate", ["sum", "product"])


def network(side, gate, seed=0):
    """Return a network whose biases are random too, so that none can be left out unnoticed."""
    torch.manual_seed(seed)
    net = PixelCNN(side, gate)
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.normal_(module.bias)
    return net


@GATES
def test_each_pixel_depends_only_on_those_before_it(gate):
    side = 6
    net = network(side, gate)
    levels = torch.randint(LEVELS, (1 + side**2, side, side))
    levels[1:] = levels[0]
    for pixel in range(side**2):
        levels.flatten(1)[1 + pixel, pixel] += 3
    levels %= LEVELS
    with torch.no_grad():
        logits = net.logits(levels).flatten(2)
    for pixel in range(side**2):
        moved = ((logits[1 + pixel] - logits[0]).abs() > 1e-6).any(dim=0)
        assert not moved[: pixel + 1].any(), "neither those before it nor itself"
        if pixel % side != side - 1:
            assert moved[pixel + 1], "its right neighbour"


@GATES
def test_the_probabilities_of_all_images_sum_to_1(gate):
    net = network(2, gate)
    images = torch.cartesian_prod(*[torch.arange(LEVELS)] * 4).reshape(-1, 2, 2)
    with torch.no_grad():
        probabilities = net(images).exp()
    assert len(images) == 8**4
    assert float(probabilities.sum()) == pytest.approx(1, abs=1e-4)
    assert float(probabilities.max() / probabilities.min()) > 2


@GATES
def test_the_logits_equal_those_of_a_plain_version(gate):
    side = 3
    net = network(side, gate)
    levels = torch.randint(LEVELS, (1, side, side))
    weights = {name: p.detach().double().numpy() for name, p in net.named_parameters()}
    embedding = weights["embedding"][0]

    def before(image, name, reach, sees_itself):
        """Sum a kernel over the pixels before each pixel, one by one."""
        kernel = weights[f"{name}.weight"]
        out = np.tile(weights[f"{name}.bias"][:, None, None], (1, side, side))
        for r, c, i, j in np.ndindex(side, side, side, side):
            if max(abs(i - r), abs(j - c)) <= reach and ((i, j) < (r, c) or (sees_itself and (i, j) == (r, c))):
                out[:, r, c] += kernel[:, :, reach + i - r, reach + j - c] @ image[:, i, j]
        return out

    def dot(image, name):
        linear = np.einsum("oi,irc->orc", weights[f"{name}.weight"][:, :, 0, 0], image)
        return linear + weights[f"{name}.bias"][:, None, None]

    x = before(levels.double().numpy(), "first", 3, sees_itself=False)
    for block in ("blocks.0", "blocks.1"):
        both = before(x, f"{block}.conv", 1, sees_itself=True) + dot(embedding, f"{block}.place")
        a, b = np.tanh(both[:16]), 1 / (1 + np.exp(-both[16:]))
        x = x + dot(a + b if gate == "sum" else a * b, f"{block}.join")
    x = np.maximum(x + dot(embedding, "place"), 0)
    logits = dot(np.maximum(dot(x, "head.1"), 0), "head.3")
    with torch.no_grad():
        assert net.logits(levels)[0].numpy() == pytest.approx(logits, abs=1e-4)


def test_the_number_of_parameters_is_the_papers():
    first = 7 * 7 * 1 * 16 + 16
    block = (3 * 3 * 16 * 32 + 32) + (4 * 32 + 32) + (16 * 16 + 16)
    last = (4 * 16 + 16) + (16 * 64 + 64) + (64 * 8 + 8)
    assert first + 2 * block + last + 42 * 42 * 4 == 19_688
    assert sum(p.numel() for p in PixelCNN(42).parameters()) == 19_688
    assert [m.kernel_size for m in PixelCNN(42).modules() if isinstance(m, MaskedConv2d)] == [(7, 7), (3, 3), (3, 3)]


def test_initial_weights_are_uniform_with_the_published_limits():
    torch.manual_seed(0)
    net = PixelCNN(42)
    block = net.blocks[1]
    limits = [
        (net.first.weight, 6 / (49 * 1 + 49 * 16)),
        (block.conv.weight, 6 / (9 * 16 + 9 * 32)),
        (block.place.weight, 6 / (4 + 32)),
        (block.join.weight, 6 / (16 + 16)),
        (net.place.weight, 6 / (4 + 16)),
        (net.head[1].weight, 6 / (16 + 64)),
        (net.head[3].weight, 6 / (64 + 8)),
        (net.embedding, 3 / 42**2),
    ]
    for parameter, square in limits:
        weights = parameter.detach()
        assert 0.9 * square**0.5 < float(weights.abs().max()) <= square**0.5
        assert float(weights.std()) == pytest.approx((square / 3) ** 0.5, rel=0.2)
    assert not any(module.bias.any() for module in net.modules() if isinstance(module, nn.Conv2d))


def test_the_gates_differ_in_nothing_but_the_gate():
    nets = []
    for gate in ("sum", "product"):
        torch.manual_seed(0)
        nets.append(PixelCNN(5, gate))
    levels = torch.randint(LEVELS, (1, 5, 5))
    assert all(torch.equal(p, q) for p, q in zip(nets[0].parameters(), nets[1].parameters(), strict=True))
    assert nets[0](levels).item() != nets[1](levels).item()
