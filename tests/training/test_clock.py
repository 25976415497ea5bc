from types import SimpleNamespace

import pytest

from cfn.training import clock as module
from cfn.training.clock import Clock


@pytest.fixture
def now(monkeypatch):
    time = SimpleNamespace(now=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: time.now))
    return time


def test_time_counts_for_the_innermost_part(now):
    clock = Clock()

    def inner():
        now.now += 3

    def outer():
        now.now += 1
        timed_inner()
        now.now += 1

    timed_inner = clock.timed("inner", inner)
    clock.timed("outer", outer)()
    timed_inner()
    assert clock.seconds == {"outer": 2, "inner": 6}


def test_a_part_can_be_limited_to_calls_from_another(now):
    clock = Clock()
    reader = clock.timed("reading", lambda: setattr(now, "now", now.now + 2), within="update")
    clock.timed("update", reader)()
    clock.timed("acting", reader)()
    assert clock.seconds == {"update": 0, "reading": 2, "acting": 2}


def test_methods_of_an_object_are_replaced(now):
    clock, thing = Clock(), SimpleNamespace(wait=lambda seconds: setattr(now, "now", now.now + seconds))
    clock.watch("waiting", thing, "wait")
    thing.wait(5)
    assert clock.seconds == {"waiting": 5}
