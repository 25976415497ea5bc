"""Compiled updates: one graph, the same numbers."""

import pytest
import torch
from learners import LEARNERS, losses
from looks import IMAGES

from cfn.bonuses.coin_flip import CoinFlipBonus
from cfn.bonuses.rnd import RNDBonus
from cfn.errors import UsageError
from cfn.nn import compiling

CPU = torch.device("cpu")
SIZES = {"d": 4, "channels": (4, 4, 4), "capacity": 40, "min_size": 10, "batch_size": 2}
NETWORKS = {**LEARNERS, "cfn": lambda: CoinFlipBonus(IMAGES, **SIZES), "rnd": lambda: RNDBonus(IMAGES)}


@pytest.mark.thorough
@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
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
    assert compiling.padded_sizes(1024) == [128, 256, 384, 512, 640, 768, 896, 1024]
    assert compiling.padded_sizes(3) == [1, 2, 3]
    for maximum in (1, 7, 32, 1000):
        for size in range(1, maximum + 1):
            assert size <= compiling.padded_size(size, maximum) <= min(maximum, size + maximum // 8 + 1)


def test_a_missing_compiler_is_reported_in_a_sentence(monkeypatch):
    def broken(function):
        raise RuntimeError("InvalidCxxCompiler: No working C++ compiler found\n\nSet TORCH_LOGS for more")

    monkeypatch.setattr(torch, "compile", broken)
    sentence = r"^compile=true: .* \(InvalidCxxCompiler: No working C\+\+ compiler found\): use compile=false$"
    with pytest.raises(UsageError, match=sentence):
        compiling.require_compiler(CPU)
