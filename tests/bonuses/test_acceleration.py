"""Bonuses that learn from transitions, with what a GPU changes: bfloat16, and batches that are sampled ahead."""

import pytest
import torch
from asynchrony import pretend_gpu
from looks import IMAGES
from walking import ACTIONS, assert_resumes, walk

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


def losses(bonus):
    found = []
    for observations, visits in walk(IMAGES, 14):
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
