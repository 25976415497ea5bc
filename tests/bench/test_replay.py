"""How much memory the agent's replay takes; in a process of its own, by what the process holds."""

import subprocess
import sys

MEMORY = """
import os, numpy as np
from cfn.replay.frames import FrameStore
from cfn.replay.n_step import Transition
from cfn.replay.transitions import TransitionReplay
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) * 1024
def fill(capacity, steps):
    store = FrameStore((84, 84), np.uint8)
    replay = TransitionReplay(capacity, 4, store, np.zeros((), np.int64))
    rng = np.random.default_rng(0)
    stack = np.array([store.put(np.zeros((84, 84), np.uint8)) for _ in range(4)], np.int32)
    for step in range(steps):
        slot = store.put(np.frombuffer(rng.bytes(84 * 84), np.uint8).reshape(84, 84))
        following = np.append(stack[1:], slot).astype(np.int32)
        store.hold(following[:3])
        replay.add(Transition(stack, 0, 0.0, 0.99, following))
        stack = following
    return replay
fill(100, 200)
before = resident()
replay = fill(ENTRIES, ENTRIES)
batch = replay.sample(32, np.random.default_rng(0))
assert batch.states.shape == (32, 84, 84, 4)
print(peak() - before, len(replay.frames), len(replay))
"""


def test_a_million_atari_sized_transitions_fit_in_seven_and_a_half_gib(bench):
    wanted = bench.size(1_000_000, 300)
    code = MEMORY.replace("ENTRIES", str(wanted))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    peak, frames, entries = map(int, done.stdout.split())
    bench.report(
        f"{entries:,} transitions, stacks of 4, {frames:,} frames of 84x84: {peak / 2**30:.2f} GiB at the peak",
        bytes=peak,
    )
    assert entries == wanted
    assert frames == wanted + 1, "every frame is another, which is the worst case"
    bench.require(peak <= 7.5 * 2**30)
