"""The device: which one, and that what is done for the sake of a GPU gives what it should, tried out on the CPU.

`ahead` makes the CPU count as a device that works while the program goes on: the code is the GPU's, but for pinning.
"""

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from looks import IMAGES, image

from cfn import device, nets
from cfn.agents.actor_critic import Actor
from cfn.agents.rainbow import RainbowAgent
from cfn.agents.sac import SACAgent
from cfn.bonuses.coin_flip import CoinFlipBonus
from cfn.bonuses.pixelcnn import PixelCNNBonus
from cfn.bonuses.rnd import RNDBonus
from cfn.errors import UsageError

CPU = torch.device("cpu")
VECTORS = gym.spaces.Box(-1, 1, (3,), np.float32)
SMALL = {"capacity": 40, "min_size": 10, "batch_size": 16}
NETWORK = {"channels": (4, 4, 4), "hidden": (8,)}


@pytest.fixture
def ahead(monkeypatch):
    monkeypatch.setattr(device, "asynchronous", lambda device: True)


def cfn_bonus(**keys):
    return CoinFlipBonus(IMAGES, d=4, channels=(4, 4, 4), **SMALL, **keys)


def see(learner, number):
    """One more visit or transition."""
    if isinstance(learner, RainbowAgent | SACAgent):
        space = IMAGES if isinstance(learner, RainbowAgent) else VECTORS
        rng = np.random.default_rng(number)
        looks = [(rng.uniform(0, 1, (1, *space.shape)) * (255 if space is IMAGES else 1)).astype(space.dtype)] * 2
        actions = learner.act(looks[0])
        learner.observe(looks[0], actions, rng.normal(size=1), looks[1], rng.random(1) < 0.1, np.array([False]))
    else:
        learner.observe(image(number % 30)[None])


LEARNERS = {
    "cfn": cfn_bonus,
    "rainbow": lambda: RainbowAgent(IMAGES, gym.spaces.Discrete(2), **SMALL, **NETWORK),
    "sac": lambda: SACAgent(VECTORS, gym.spaces.Box(-1, 1, (2,)), **SMALL, hidden=(8,)),
}
EACH = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


def losses(learner, numbers):
    """Of an update after each of so many visits."""
    found = []
    for number in numbers:
        see(learner, number)
        found += [float(value) for value in learner.update().values()]
    return found


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


@pytest.mark.usefixtures("ahead")
@EACH
def test_the_next_batch_is_drawn_while_the_device_works(make, monkeypatch):
    """Before the priorities of this one are known, which is all that is waited for."""
    learner, order = make(), []
    for name in ("sample", "update_priorities"):
        original = getattr(learner._replay, name)
        monkeypatch.setattr(
            learner._replay, name, lambda *a, name=name, original=original: (order.append(name), original(*a))[1]
        )
    losses(learner, range(14))
    drawn = [name[0] for name in order]
    assert "".join(drawn) in ("s" + "su" * (len(drawn) // 2), "s" * len(drawn)), "s: sample, u: update_priorities"
    assert all(isinstance(value, torch.Tensor) for value in learner.update().values()), "nor is a loss waited for"


@EACH
def test_drawn_ahead_from_an_unchanged_buffer_at_random_batches_are_those_of_the_plain_order(make, monkeypatch):
    """Without priorities, and with nothing added between updates, nothing differs."""
    plain, early = make(), None
    with monkeypatch.context() as patch:
        patch.setattr(device, "asynchronous", lambda device: True)
        early = make()
    for learner in (plain, early):
        monkeypatch.setattr(learner._replay, "update_priorities", lambda *_: None)
        for number in range(30):
            see(learner, number)
    for _ in range(4):
        ours, theirs = plain.update(), early.update()
        assert {name: float(value) for name, value in ours.items()} == {n: float(v) for n, v in theirs.items()}
    assert early._batches.state_dict()
    assert not plain._batches.state_dict()


@pytest.mark.usefixtures("ahead")
@EACH
def test_a_run_that_draws_ahead_is_resumed_exactly(make):
    """Entries and frames of the batch drawn ahead are overwritten before it is learned from: the ring has 40."""
    one, other = make(), make()
    for number in range(40):
        see(one, number)
    losses(one, range(40, 50))
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    assert losses(one, range(50, 60)) == losses(other, range(50, 60))
    assert copy.deepcopy(one).update() == one.update()


NETWORKS = {
    "cfn": cfn_bonus,
    "rnd": lambda: RNDBonus(IMAGES),
    "pixelcnn": lambda: PixelCNNBonus(IMAGES, side=16),
    **{name: make for name, make in LEARNERS.items() if name != "cfn"},
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


def test_a_compiled_network_is_the_same_network():
    """Forward and backward, for several sizes of a batch, in bf16 too; it is saved under the same names."""
    torch._dynamo.reset()
    plain = nets.coin_flip_net(VECTORS, 4, hidden=(8,))
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
