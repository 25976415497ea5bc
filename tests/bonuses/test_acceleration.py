"""Bonuses of the family, with what makes them fast: bfloat16, batches that are sampled ahead, and compiled updates."""

import pytest
import torch
from asynchrony import pretend_gpu
from looks import IMAGES
from walking import ACTIONS, assert_resumes, walk

from cfn.bonuses.combination import Combination
from cfn.bonuses.drnd import DRNDBonus
from cfn.bonuses.e3b import E3BBonus
from cfn.bonuses.icm import ICMBonus
from cfn.bonuses.successor import SuccessorBonus
from cfn.nn import device

SMALL = {"min_size": 8, "batch_size": 8, "capacity": 30}
MAKERS = {
    "drnd": lambda seed: DRNDBonus(IMAGES, seed=seed, targets=3, outputs=8, **SMALL),
    "e3b": lambda seed: E3BBonus(IMAGES, ACTIONS, seed=seed, num_envs=2, **SMALL),
    "icm": lambda seed: ICMBonus(IMAGES, ACTIONS, seed=seed, **SMALL),
    "successor": lambda seed: SuccessorBonus(IMAGES, ACTIONS, seed=seed, features=16, update_period=1, **SMALL),
}
EACH = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def losses(bonus, steps=14):
    found = []
    for observations, visits in walk(IMAGES, steps):
        bonus.observe(observations, visits)
        found += bonus.update().values()
    return found


@EACH
def test_bf16_learns_almost_the_same(make):
    exact, rough = make(0), make(0)
    device.use_bf16(rough.networks, torch.device("cpu"))
    plain, fast = losses(exact), losses(rough)
    assert len(plain) > 5
    assert fast == pytest.approx(plain, rel=0.15, abs=0.05)
    assert fast != plain


@EACH
def test_batches_that_are_sampled_ahead_are_resumed_exactly(make, monkeypatch):
    pretend_gpu(monkeypatch)
    assert_resumes(make, IMAGES, steps=12, more=8)


class Walking(Combination):
    """A combination that only passes on."""

    def observe(self, observations, visits=None):
        return self._parts["part"].observe(observations, visits)

    def novelty(self, observations, states=None):
        return self._parts["part"].novelty(observations, states)


@pytest.mark.slow
@EACH
def test_a_compiled_update_is_one_graph_and_learns_the_same(make, caplog):
    caplog.set_level("INFO", "cfn.nn.compiling")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    plain, quick = make(0), make(0)
    quick.compile()
    assert losses(quick, 110) == pytest.approx(losses(plain, 110), rel=1e-4, abs=1e-5)
    networks = (torch.nn.ModuleList(bonus.networks) for bonus in (plain, quick))
    for ours, theirs in zip(*(net.parameters() for net in networks), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
    assert not torch._dynamo.utils.counters["graph_break"]
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert graphs == sum("Compiled" in record.message for record in caplog.records) <= 8


def test_combinations_compile_their_parts(monkeypatch):
    part, asked = MAKERS["icm"](0), []
    monkeypatch.setattr(part, "compile", lambda: asked.append(part))
    Walking({"part": part}).compile()
    assert asked == [part]
