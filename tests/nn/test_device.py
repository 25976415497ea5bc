"""The device: which one, and that compilation and bfloat16 change almost no number, tried out on the CPU."""

import copy

import pytest
import torch
from learners import LEARNERS, losses
from looks import IMAGES
from threadpoolctl import threadpool_info

from cfn.agents.actor_critic import Actor
from cfn.bonuses.pixelcnn import PixelCNNBonus
from cfn.bonuses.rnd import RNDBonus
from cfn.errors import UsageError
from cfn.nn import device

CPU = torch.device("cpu")


def test_the_cpu_is_always_there():
    assert device.choose("cpu") == CPU


@pytest.mark.parametrize(("asked", "expected"), [(1, 1), (None, device.DEFAULT_THREADS)])
def test_pytorch_numpy_and_scipy_share_one_limit_of_threads(asked, expected):
    import scipy.linalg  # noqa: F401  # has a library of its own

    try:
        device.limit_threads(asked)
        libraries = {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}
        assert (torch.get_num_threads(), libraries) == (expected, {expected})
    finally:
        device.limit_threads(1)


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


def learned(make, bf16=False):
    learner = make()
    names = [list(net.state_dict()) for net in learner.networks]
    if bf16:
        device.use_bf16(learner.networks, CPU)
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
    device.use_bf16((actor,), CPU)
    for rough, exactly, copied in zip(actor(inputs), exact, copy.deepcopy(actor)(inputs), strict=True):
        assert rough.dtype == torch.float32
        assert not torch.equal(rough, exactly)
        assert torch.allclose(rough, exactly, atol=0.05)
        assert torch.equal(rough, copied)
    assert torch.equal(twin(inputs)[0], exact[0])


def test_a_gpu_without_bf16_is_told(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    with pytest.raises(UsageError, match="bf16=true: this GPU does not"):
        device.use_bf16((), torch.device("cuda"))
