import copy

import pytest
import torch

from cfn.optim import RMSProp


def test_steps_equal_those_computed_by_hand():
    parameter = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
    optimizer = RMSProp([parameter], lr=0.1, decay=0.9, momentum=0.8, epsilon=1e-4)
    values, squares, steps = [1.0, -2.0, 0.5], [0.0] * 3, [0.0] * 3
    for gradient in ([0.3, -0.02, 0.0], [0.1, 5.0, 1e-3], [-0.2, 0.0, 2e-3]):
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
        for i, g in enumerate(gradient):
            squares[i] = 0.9 * squares[i] + 0.1 * g * g
            steps[i] = 0.8 * steps[i] + 0.1 * g / (squares[i] + 1e-4) ** 0.5
            values[i] -= steps[i]
        assert parameter.tolist() == pytest.approx(values, rel=1e-5)


def test_epsilon_is_inside_the_root_where_pytorch_has_it_outside():
    ours, theirs = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
    ours.grad, theirs.grad = torch.full((1,), 1e-3), torch.full((1,), 1e-3)
    RMSProp([ours], lr=1.0, momentum=0.0).step()
    torch.optim.RMSprop([theirs], lr=1.0, alpha=0.9, eps=1e-4).step()
    assert ours.item() == pytest.approx(-1e-3 / (1e-7 + 1e-4) ** 0.5, rel=1e-4)
    assert theirs.item() / ours.item() > 20


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
