"""The device: which one, and that compilation and bfloat16 change almost no number, tried out on the CPU."""

import copy

import pytest
import torch
from learners import LEARNERS, VECTORS, losses
from looks import IMAGES

from cfn.agents.actor_critic import Actor
from cfn.bonuses.coin_flip import coin_flip_net
from cfn.bonuses.pixelcnn import PixelCNNBonus
from cfn.bonuses.rnd import RNDBonus
from cfn.errors import UsageError
from cfn.nn import device

CPU = torch.device("cpu")


def test_the_cpu_is_always_there():
    assert device.choose("cpu") == CPU


def test_auto_takes_what_there_is(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device.choose("auto") == CPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device.choose("auto") == torch.device("cuda")


def test_a_missing_gpu_is_told_with_what_would_be_right(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match=r"device=cuda: .* use device=auto or device=cpu"):
        device.choose("cuda")


class Pinned:
    """Stands in for a tensor, and tells what was done with it."""

    def pin_memory(self):
        return self

    def to(self, device, non_blocking=False):
        return device.type, non_blocking


def test_batches_reach_a_gpu_through_pinned_memory_and_without_waiting():
    tensor = torch.ones(3)
    assert device.send(tensor, CPU) is tensor
    assert device.send(Pinned(), torch.device("cuda")) == ("cuda", True)


NETWORKS = {
    **LEARNERS,
    "rnd": lambda: RNDBonus(IMAGES),
    "pixelcnn": lambda: PixelCNNBonus(IMAGES, side=16),
}
EVERY = pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)


def learned(make, compile=False, bf16=False):
    learner = make()
    names = [list(net.state_dict()) for net in learner.networks]
    device.speed_up(learner.networks, CPU, compile, bf16)
    found = losses(learner, range(13))
    assert [list(net.state_dict()) for net in learner.networks] == names
    assert all(p.dtype == torch.float32 for net in learner.networks for p in net.parameters())
    return found


@EVERY
def test_bf16_learns_almost_the_same(make):
    exact, rough = learned(make), learned(make, bf16=True)
    assert rough == pytest.approx(exact, rel=0.15, abs=0.05)
    assert (rough == exact) == (make is NETWORKS["pixelcnn"]), "whose gains are small differences"


def test_outputs_in_bf16_come_back_in_single_precision():
    actor = Actor(3, 2, (8,))
    inputs = torch.randn(5, 3)
    exact = actor(inputs)
    twin = copy.deepcopy(actor)
    device.speed_up((actor,), CPU, compile=False, bf16=True)
    for rough, exactly, copied in zip(actor(inputs), exact, copy.deepcopy(actor)(inputs), strict=True):
        assert rough.dtype == torch.float32
        assert not torch.equal(rough, exactly)
        assert torch.allclose(rough, exactly, atol=0.05)
        assert torch.equal(rough, copied)
    assert torch.equal(twin(inputs)[0], exact[0])


def test_a_gpu_without_bf16_is_told(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    with pytest.raises(UsageError, match="bf16=true: this GPU does not"):
        device.speed_up((), torch.device("cuda"), compile=False, bf16=True)


@pytest.mark.thorough
def test_a_compiled_network_is_the_same_network():
    """Forward and backward, for several sizes of a batch, in bf16 too; it is saved under the same names."""
    torch._dynamo.reset()
    plain = coin_flip_net(VECTORS, 4, hidden=(8,))
    compiled, both = copy.deepcopy(plain), copy.deepcopy(plain)
    device.speed_up((compiled,), CPU, compile=True, bf16=False)
    torch._dynamo.utils.counters.clear()
    for size in (5, 7):
        inputs = torch.randn(size, 3)
        ours, theirs = compiled(inputs), plain(inputs)
        assert torch.allclose(ours, theirs, atol=1e-6)
        for a, b in zip(*(torch.autograd.grad(o.square().sum(), n.parameters())
                          for o, n in ((ours, compiled), (theirs, plain))), strict=True):  # fmt: skip
            assert torch.allclose(a, b, atol=1e-5)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert graphs == 2, "all layers are one, made for the first size, and then for any"
    device.speed_up((both,), CPU, compile=True, bf16=True)
    with torch.no_grad():
        assert torch.allclose(both(inputs), plain(inputs), atol=0.05)
    plain.load_state_dict(compiled.state_dict())


def test_a_missing_compiler_is_told_in_a_sentence(monkeypatch):
    def broken(function):
        raise RuntimeError("InvalidCxxCompiler: No working C++ compiler found\n\nSet TORCH_LOGS for more")

    monkeypatch.setattr(torch, "compile", broken)
    device.speed_up((), CPU, compile=True, bf16=False)
    sentence = r"^compile=true: .* \(InvalidCxxCompiler: No working C\+\+ compiler found\): use compile=false$"
    with pytest.raises(UsageError, match=sentence):
        device.speed_up((torch.nn.Linear(1, 1),), CPU, compile=True, bf16=False)
