"""Where the time of the headline command goes: the real loop, with a clock around each of its parts."""

from functools import partial

import pytest
from composing import composed
from looping import Looping

from cfn.replay.frames import FrameStore
from cfn.replay.pixels import PackedPixels
from cfn.tracking.metrics_file import MetricsFile
from cfn.training import loop
from cfn.training.clock import Clock

RAW_BYTES = 2**22  # compressed from 594 frames on, so that filling takes no longer than measuring
NETWORK, SAMPLING, READING = (f"bonus update: {part}" for part in ("network", "sampling, priorities", "reading frames"))


def table(seconds):
    """The parts, the longest first, and their shares of all."""
    total = sum(seconds.values())
    parts = sorted(seconds.items(), key=lambda item: -item[1])
    return "\n".join(f"  {part:<32}{taken:8.2f} s{taken / total:8.1%}" for part, taken in parts)


def watch(clock, training, monkeypatch):
    """Put the clock around the parts of a training."""
    agent, bonus = training.agent, training.bonus
    parts = {
        "the loop itself": [(training, "loop")],
        "environment": [(training.envs, "begin_episodes"), (training.envs, "step")],
        "acting": [(agent, "act")],
        "agent update": [(agent, "update")],
        "bonus of a visit": [(bonus, "observe")],
        NETWORK: [(bonus, "update")],
        SAMPLING: [(bonus._replay, "sample"), (bonus._replay, "update_priorities")],
        "storing": [(agent, "observe"), (bonus._replay, "add"), (FrameStore, "put")],
        "counting and logging": [
            (training.visit_counts, "visit"),
            (training.visit_counts, "arrive"),
            (MetricsFile, "log"),
        ],
    }
    for part, calls in parts.items():
        for owner, name in calls:
            monkeypatch.setattr(owner, name, clock.timed(part, getattr(owner, name)))
    reading = clock.timed(READING, FrameStore.__getitem__, within=NETWORK)  # the agent's own belongs to its update
    monkeypatch.setattr(FrameStore, "__getitem__", reading)


@pytest.mark.parametrize("batch", [512, 1024])
def test_most_of_the_time_is_the_coin_flip_network(tmp_path, monkeypatch, batch, bench):
    """`cfn train env=montezuma bonus=cfn`, whose batch is 512, and with the gridworld's of 1,024; no evaluations."""
    fill, warm_up, steps = bench.size((3_000, 20, 100), (60, 2, 4))
    batch = bench.size(batch, batch // 64)
    monkeypatch.setattr(loop, "FrameStore", partial(FrameStore, raw_bytes=bench.size(RAW_BYTES, 2**16)))
    sizes = (f"bonus.batch_size={batch}", f"bonus.min_size={fill}", f"agent.min_size={fill}", "agent.epsilon_decay=0")
    config, _ = composed("env=montezuma", "bonus=cfn", "tracker=none", "device=cpu", *sizes)
    go_on, clock = Looping(tmp_path, config), Clock()
    watch(clock, go_on.training, monkeypatch)
    for taken in (fill, warm_up, steps):
        clock.seconds.clear()
        go_on(taken)
    store = go_on.training.bonus._replay.frames
    assert isinstance(store._pixels, PackedPixels), "frames are compressed by now"
    taken, others = clock.seconds, clock.seconds[NETWORK] + clock.seconds[SAMPLING]
    bench.report(
        f"Montezuma's Revenge, Rainbow and CFN, batch {batch:,}, {len(store):,} distinct frames: "
        f"{steps / sum(taken.values()):.1f} steps per second; reading frames adds {taken[READING] / others:.1%} to a "
        f"CFN update\n{table(clock.seconds)}"
    )
    bench.require(max(taken, key=taken.get) == NETWORK)
    bench.require(taken[READING] <= 0.05 * others)
