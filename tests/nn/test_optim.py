import copy

import pytest
import torch

from cfn.nn.optim import Adam, CentredRMSProp, RMSProp, clip_gradients, descend


def test_steps_equal_those_computed_by_hand():
    parameter = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
    optimizer = RMSProp([parameter], lr=0.1, decay=0.9, momentum=0.8, epsilon=1e-4)
    values, squares, steps = [1.0, -2.0, 0.5], [1.0] * 3, [0.0] * 3
    for gradient in ([0.3, -0.02, 0.0], [0.1, 5.0, 1e-3], [-0.2, 0.0, 2e-3]):
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
        for i, g in enumerate(gradient):
            squares[i] = 0.9 * squares[i] + 0.1 * g * g
            steps[i] = 0.8 * steps[i] + 0.1 * g / (squares[i] + 1e-4) ** 0.5
            values[i] -= steps[i]
        assert parameter.tolist() == pytest.approx(values, rel=1e-5)


def test_epsilon_is_inside_the_root_and_the_mean_square_starts_at_1():
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = RMSProp([parameter], lr=1.0, momentum=0.0)
    steps = []
    for _ in range(300):
        before = parameter.item()
        parameter.grad = torch.full((1,), 1e-3)
        optimizer.step()
        steps.append(before - parameter.item())
    assert steps[0] == pytest.approx(1e-3 / (0.9 + 0.1 * 1e-6 + 1e-4) ** 0.5, rel=1e-4)
    assert steps[1] == pytest.approx(1e-3 / (0.81 + 0.19 * 1e-6 + 1e-4) ** 0.5, rel=1e-4)
    assert steps[-1] == pytest.approx(1e-3 / (1e-6 + 1e-4) ** 0.5, rel=1e-3), "outside the root: 1e-3 / (1e-3 + 1e-4)"
    assert sum(step < steps[-1] / 2 for step in steps) == 76, "0.9^t > 4 (1e-6 + 1e-4) - 1e-4 - 1e-6 until t = 76"


def test_its_state_can_be_saved():
    def make(value):
        parameter = torch.nn.Parameter(torch.full((3,), value))
        return parameter, RMSProp([parameter], lr=0.1)

    (one, first), (other, second) = make(1.0), make(2.0)
    one.grad = torch.tensor([1.0, 2.0, 3.0])
    first.step()
    with torch.no_grad():
        other.copy_(one)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for parameter, optimizer in ((one, first), (other, second)):
        parameter.grad = torch.tensor([0.1, -0.2, 0.3])
        optimizer.step()
    assert one.tolist() == other.tolist()


def test_a_saved_mean_square_is_not_started_again():
    """Checkpoints of an optimiser whose mean square started at 0 continue from their own value."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = RMSProp([parameter], lr=1.0, momentum=0.0)
    state = optimizer.state_dict()
    state["state"] = {0: {"mean_square": torch.full((1,), 4e-6), "momentum": torch.zeros(1)}}
    optimizer.load_state_dict(state)
    parameter.grad = torch.full((1,), 1e-3)
    optimizer.step()
    assert parameter.item() == pytest.approx(-1e-3 / (0.9 * 4e-6 + 0.1 * 1e-6 + 1e-4) ** 0.5, rel=1e-4)


def test_adam_is_pytorchs_adam_compiled_or_not():
    """The compiled form consists of single operations; here they run one by one."""
    rng = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 4, generator=rng), torch.randn(5, generator=rng)]
    theirs, ours, plain = ([torch.nn.Parameter(p.clone()) for p in start] for _ in range(3))
    optimizers = torch.optim.Adam(theirs, 0.01, eps=1e-5), Adam(ours, 0.01, 1e-5), Adam(plain, 0.01, 1e-5)
    optimizers[2].in_graph = True
    for _ in range(20):
        gradients = [torch.randn(p.shape, generator=rng) for p in start]
        for parameters, optimizer in zip((theirs, ours, plain), optimizers, strict=True):
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient.clone()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(torch.compiler, "is_compiling", lambda single=parameters is plain: single)
                optimizer.step()
    for a, b, c in zip(theirs, ours, plain, strict=True):
        assert torch.allclose(a, b, atol=1e-7)
        assert torch.allclose(a, c, atol=1e-6)


def test_centred_rmsprop_is_pytorchs():
    rng = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 4, generator=rng), torch.randn(5, generator=rng)]
    theirs, ours = ([torch.nn.Parameter(p.clone()) for p in start] for _ in range(2))
    optimizers = torch.optim.RMSprop(theirs, 0.01, 0.95, 1e-5, centered=True), CentredRMSProp(ours, 0.01, 0.95, 1e-5)
    for step in range(30):
        gradients = [torch.randn(p.shape, generator=rng) for p in start]
        for parameters, optimizer in zip((theirs, ours), optimizers, strict=True):
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient.clone()
            optimizer.step()
        if step == 10:  # states of one are those of the other
            optimizers[1].load_state_dict(copy.deepcopy(optimizers[0].state_dict()))
    for a, b in zip(theirs, ours, strict=True):
        assert torch.allclose(a, b, atol=1e-7)


@pytest.mark.parametrize("size", [0.1, 100.0])
def test_gradients_are_clipped_as_by_pytorch(size):
    parameters = [torch.nn.Parameter(torch.zeros(3, 4)), torch.nn.Parameter(torch.zeros(5))]
    for parameter in parameters:
        parameter.grad = size * torch.randn(parameter.shape)
    ours = [parameter.grad.clone() for parameter in parameters]
    torch.nn.utils.clip_grad_norm_(parameters, 2.0)
    clip_gradients(ours, 2.0)
    for parameter, gradient in zip(parameters, ours, strict=True):
        assert torch.equal(parameter.grad, gradient)


def test_each_loss_trains_its_own_parameters_and_layouts_may_differ():
    """The gradient of a convolution may be laid out otherwise than its weight."""
    torch.manual_seed(0)
    net, other = torch.nn.Conv2d(2, 3, 3), torch.nn.Parameter(torch.ones(()))
    optimizer = Adam([*net.parameters(), other], 0.1)
    optimizer.prepare()
    inputs = torch.randn(4, 2, 6, 6).contiguous(memory_format=torch.channels_last)
    loss = (net(inputs) * other).square().mean()
    before, sign = net.weight.detach().clone(), torch.autograd.grad(loss, net.weight, retain_graph=True)[0].sign()
    descend(optimizer, (loss, list(net.parameters())))
    assert torch.allclose(net.weight, before - 0.1 * sign, atol=1e-4), "the first step of Adam is lr * sign"
    assert other.item() == 1
