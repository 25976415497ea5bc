"""Batches that are sampled ahead, for the sake of a GPU, tried out on the CPU.

`ahead` makes the CPU count as a device that works while the program continues: the code is the GPU's, but for pinning.
"""

import copy

import pytest
import torch
from asynchrony import pretend_gpu
from learners import LEARNERS, losses, see

EACH = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


@pytest.fixture
def ahead(monkeypatch):
    pretend_gpu(monkeypatch)


@pytest.mark.usefixtures("ahead")
@EACH
def test_the_next_batch_is_drawn_while_the_device_works(make, monkeypatch):
    """Before the priorities of this one are written, which happens when the next batch is taken."""
    learner, order = make(), []
    for name in ("sample", "update_priorities"):
        original = getattr(learner._replay, name)
        monkeypatch.setattr(
            learner._replay, name, lambda *a, name=name, original=original: (order.append(name), original(*a))[1]
        )
    losses(learner, range(14))
    drawn = [name[0] for name in order]
    assert "".join(drawn) in ("ss" + "us" * (len(drawn) // 2 - 1), "s" * len(drawn)), "s: sample, u: update_priorities"
    assert all(isinstance(value, torch.Tensor) for value in learner.update().values()), "nor is a loss waited for"


@EACH
def test_drawn_ahead_from_an_unchanged_buffer_at_random_batches_are_those_of_the_plain_order(make, monkeypatch):
    """Without priorities, and with nothing added between updates, nothing differs."""
    plain, early = make(), None
    with monkeypatch.context() as patch:
        pretend_gpu(patch)
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
