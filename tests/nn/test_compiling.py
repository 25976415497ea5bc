"""Compiled updates: one graph, the same numbers."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from learners import LEARNERS, losses
from looks import IMAGES, VECTORS
from torch._dynamo.eval_frame import _debug_get_cache_entry_list

from cfn.bonuses.coin_flip import CoinFlipBonus
from cfn.bonuses.rnd import RNDBonus
from cfn.errors import UsageError
from cfn.nn import compiling

CPU = torch.device("cpu")
SIZES = {"d": 4, "channels": (4, 4, 4), "capacity": 40, "min_size": 10, "batch_size": 2}
NETWORKS = {**LEARNERS, "cfn": lambda: CoinFlipBonus(IMAGES, **SIZES), "rnd": lambda: RNDBonus(IMAGES)}
QUICK = ("cfn", "sac")
"""Networks whose compilation takes the least time, one of each kind of update: the others are tested by nox -s slow."""


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=pytest.mark.thorough if name in QUICK else pytest.mark.slow)
        for name, make in NETWORKS.items()
    ],
)
def test_a_compiled_update_is_one_graph_and_learns_the_same(make, caplog):
    """After 100 updates; the sizes of the folded batches of coin flips differ."""
    caplog.set_level("INFO", "cfn.nn.compiling")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    plain, quick = make(), make()
    quick.compile()
    assert losses(quick, range(110)) == pytest.approx(losses(plain, range(110)), rel=1e-4, abs=1e-5)
    networks = (torch.nn.ModuleList(learner.networks) for learner in (plain, quick))
    for ours, theirs in zip(*(net.parameters() for net in networks), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
    assert not torch._dynamo.utils.counters["graph_break"]
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert graphs == sum("Compiled" in record.message for record in caplog.records) <= 3


def test_sizes_of_padded_batches():
    assert compiling.padded_sizes(1024) == list(range(64, 1025, 64))
    assert compiling.padded_sizes(3) == [1, 2, 3]
    for maximum in (1, 7, 32, 1000):
        for size in range(1, maximum + 1):
            assert size <= compiling.padded_size(size, maximum) <= min(maximum, size + maximum // 16 + 1)


def test_batches_of_large_images_are_not_padded_on_the_cpu(caplog):
    """At the paper's sizes, compiling gains nothing there, and padding costs a few percent."""
    caplog.set_level("INFO", "cfn.nn.compiling")
    large = gym.spaces.Box(0, 255, (84, 84), np.uint8)
    bonuses = [CoinFlipBonus(space, batch_size=512, capacity=600, min_size=10) for space in (large, VECTORS)]
    for bonus in bonuses:
        bonus.compile()
    assert [bonus._step == bonus._learn for bonus in bonuses] == [True, False]
    assert [record.message for record in caplog.records] == [
        "The coin-flip update is not compiled: on the CPU, batches of large images take as long or longer then."
    ]
    assert compiling.padding_pays("", 2**30, torch.device("cuda"))


def test_a_missing_compiler_is_reported_in_a_sentence(monkeypatch):
    def broken(function):
        raise RuntimeError("InvalidCxxCompiler: No working C++ compiler found\n\nSet TORCH_LOGS for more")

    monkeypatch.setattr(torch, "compile", broken)
    sentence = r"^compile=true: .* \(InvalidCxxCompiler: No working C\+\+ compiler found\): use compile=false$"
    with pytest.raises(UsageError, match=sentence):
        compiling.require_compiler(CPU)


class Learner:
    """An object with a network, whose method is compiled."""

    def __init__(self):
        self.net = torch.nn.Linear(2, 1)

    def learn(self, x):
        return torch.autograd.grad(self.net(x).square().sum(), self.net.weight)[0]


@pytest.mark.thorough
def test_the_number_of_runs_that_a_process_compiles_has_no_limit():
    """PyTorch refuses to compile a function more than `MAX_SHAPES` times: it must forget earlier runs."""
    learners = [Learner() for _ in range(3)]  # all alive: Python may not have freed earlier runs yet
    for number, learner in enumerate(learners):
        compiling.require_compiler(CPU)
        compiling.compiled(learner.learn, "a network", CPU)(torch.ones(number + 1, 2))
    assert len(_debug_get_cache_entry_list(Learner.learn.__code__)) == 1
