"""How often the program waits for the device, counted on the CPU.

Tensors that are sent to the device are marked. What is computed from them is marked too, until it is read; a read of a
marked tensor outside `fetch` would make a GPU finish all queued work.
"""

import pytest
import torch
from asynchrony import Event, pretend_gpu
from learners import LEARNERS, see

from cfn.nn import device as devices

READS = {"item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__", "__array__", "nonzero"}
EACH = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


class OnDevice(torch.Tensor):
    """A tensor that counts as one on a GPU."""

    reads: list[str] = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        if function.__name__ in READS:
            cls.reads.append(function.__name__)
        result = super().__torch_function__(function, types, arguments, keywords or {})
        to_cpu = function.__name__ == "to" and "cpu" in [str(argument) for argument in arguments[1:]]
        return result.as_subclass(torch.Tensor) if to_cpu else result


@pytest.fixture(autouse=True)
def marked(monkeypatch):
    """Let the CPU count as an asynchronous device whose tensors are marked."""
    plain = devices.send
    mark = lambda tensor, device: plain(tensor, device).as_subclass(OnDevice)  # noqa: E731
    for name in ("cfn.nn.networks", "cfn.nn.device", "cfn.bonuses.coin_flip", "cfn.agents.sac"):
        monkeypatch.setattr(f"{name}.send", mark)
    pretend_gpu(monkeypatch)
    OnDevice.reads.clear()
    Event.waits = 0


def waits(call, *arguments):
    """How often a call waits for the device."""
    before = Event.waits
    result = call(*arguments)
    assert OnDevice.reads == [], "no result is read without `fetch`"
    return Event.waits - before, result


@EACH
def test_a_step_waits_at_most_once_for_each_learner(make):
    """Once for the agent's action, or once for the bonus; not at all for what is only stored."""
    learner = make()
    for number in range(30):
        see(learner, number)
        learner.update()
    counts = [waits(see, learner, number)[0] for number in range(30, 40)]
    assert max(counts) == 1, "an agent acts once, a bonus is paid once"


@EACH
def test_an_update_waits_only_for_the_priorities_of_the_one_before(make):
    learner = make()
    for number in range(30):
        see(learner, number)
    learner.update()
    prioritized = learner._batches._finish is not None
    for _ in range(5):
        count, measured = waits(learner.update)
        assert count == prioritized
        assert all(isinstance(value, torch.Tensor) for value in measured.values()), "losses stay on the device"
    learner.state_dict()
    assert learner._batches._finish is None, "priorities are written before the replay buffer is saved"
