"""Memory of runs, before they are submitted."""

import pytest
from composing import composed
from processes import stepping

from cfn.errors import UsageError
from cfn.launch.memory_request import BEYOND_BUFFERS, buffer_bytes, gib_to_request
from cfn.nn import memory_limits
from cfn.training.loop import Training

GRID = ("agent=random", "env.size=7", "env.image_size=14", "bonus=cfn", "device=cpu")


def config(*overrides):
    return composed(*GRID, *overrides)[0]


def test_the_largest_run_decides():
    small, large = config("bonus.capacity=1000"), config("bonus.capacity=9000000", "steps=9000000")
    assert buffer_bytes(large) > 2**30
    assert gib_to_request("auto", [small]) == BEYOND_BUFFERS + 1
    assert gib_to_request("auto", [small, large]) > gib_to_request("auto", [small])
    assert gib_to_request(64, [small, large]) == 64


def test_processes_that_step_environments_need_memory_as_well():
    many = config("num_envs=9", "env_workers=9")
    before = stepping()
    assert gib_to_request("auto", [config(), many]) == BEYOND_BUFFERS + 3
    assert set(stepping()) <= set(before), "none is started to find out"


def test_the_limits_of_this_machine_do_not_count(monkeypatch):
    monkeypatch.setattr(memory_limits, "_left_in_groups", lambda: iter([1000]))
    made = config()
    with pytest.raises(UsageError, match="can allocate"):
        Training(made)
    assert gib_to_request("auto", [config()]) == BEYOND_BUFFERS + 1


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (1e-6, "mem_gb=1e-06: the replay buffers of a run can grow to 0.0 GiB: ask for more"),
        ("lots", "a number of GiB"),
    ],
)
def test_a_request_that_is_too_small_is_refused(asked, reason):
    with pytest.raises(UsageError, match=reason):
        gib_to_request(asked, [config()])
