import copy

import pytest
import torch

from cfn.nn.optim import RMSProp


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
