"""The coin-flip update against its plain version, and what the replay costs; on an otherwise idle machine."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from cfn.bonuses.coin_flip import CoinFlipBonus
from cfn.envs.gridworld import Gridworld
from cfn.nn.optim import RMSProp


def all_images(size=42):
    """All states of the gridworld, in images of 84x84 pixels."""
    env = Gridworld()
    images = []
    for env._x in range(size):
        for env._y in range(size):
            images.append(env._image())
    return np.stack(images)


def seconds(*calls, repeats=7):
    """The median time of each call; they take turns, so that a slow moment of the machine falls on all of them."""
    times = [[] for _ in calls]
    for repeat in range(repeats + 1):
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            if repeat:  # the first is for warming up
                taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def plain_net():
    """The network as one would write it in PyTorch, each padding that is not even a layer."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 8, stride=4, padding=2), nn.LeakyReLU(0.2),
        nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(32, 64, 4, stride=2), nn.LeakyReLU(0.2),
        nn.Conv2d(64, 64, 3, padding=1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(7744, 20),
    )  # fmt: skip


def plain_update(bonus, layout):
    """The update as one would write it: a row per sample, both networks run."""
    net, prior = (plain_net().to(memory_format=layout) for _ in range(2))
    optimizer = RMSProp(net.parameters(), 1e-4)
    replay, rng = bonus._replay, np.random.default_rng(0)

    def update():
        entries = replay._tree.sample(bonus._batch_size, rng)
        images = torch.from_numpy(replay.frames[replay._slots[entries]]).unsqueeze(1).float().div_(255)
        images = images.contiguous(memory_format=layout)
        coins = torch.from_numpy(replay.flips(entries))
        with torch.no_grad():
            raw = prior(images)
        loss = (net(images) + (raw - raw.mean(0)) / (raw.var(0) + 1e-4).sqrt() - coins).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return update


def test_an_update_is_faster_than_the_plain_version(bench):
    batch_size, side, repeats = bench.size((1024, 42, 7), (16, 4, 1))
    bonus = CoinFlipBonus(gym.spaces.Box(0, 255, (84, 84), np.uint8), batch_size=batch_size)
    images = all_images(side)
    count = len(images)
    for number in [*range(count), *np.random.default_rng(0).integers(count, size=2000).tolist()]:
        bonus.observe(images[number : number + 1])
    plain = (plain_update(bonus, layout) for layout in (torch.channels_last, torch.contiguous_format))
    ours, plain_last, plain_default = seconds(bonus.update, *plain, repeats=repeats)

    def sample_and_prioritise():
        batch = bonus._replay.sample(batch_size, bonus._rng)
        bonus._replay.update_priorities(batch, np.full(len(batch.slots), 0.5))

    (replay,) = seconds(sample_and_prioritise, repeats=50)
    (one,) = seconds(lambda: bonus.novelty(images[:1]), repeats=200)
    bench.report(
        f"coin-flip update, {batch_size:,} of {count:,} gridworld states: {ours * 1e3:.0f} ms; "
        f"plain {plain_last * 1e3:.0f} ms in "
        f"channels_last ({ours / plain_last:.2f}), {plain_default * 1e3:.0f} ms in the default layout "
        f"({ours / plain_default:.2f}); sampling and priorities {replay * 1e3:.2f} ms ({replay / ours:.1%}); "
        f"the bonus of one state {one * 1e3:.2f} ms",
        ratio_channels_last=ours / plain_last,
        ratio_default_layout=ours / plain_default,
    )
    bench.require(ours <= 0.55 * plain_last)
    bench.require(ours <= 0.40 * plain_default)
    bench.require(replay <= 0.05 * ours)
    bench.require(one <= 1e-3)


MEMORY = """
import os, numpy as np
from cfn.replay.coins import CoinReplay
from cfn.replay.frames import FrameStore
import sys
sys.path.insert(0, {here!r})
from test_coin_flip import all_images
images = all_images()
rng = np.random.default_rng(0)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def fill(replay, store, entries):
    for number in rng.integers(1764, size=entries).tolist():
        slot = store.put(images[number])
        replay.add(np.array([slot]), np.ones((1, 20), np.float32))
store = FrameStore((84, 84), np.uint8)
store.keep_features(20)
fill(CoinReplay(2000, 20, store), store, 2000)
del store
before = resident()
store = FrameStore((84, 84), np.uint8)
store.keep_features(20)
replay = CoinReplay({entries}, 20, store)
fill(replay, store, {entries})
print(resident() - before, len(store), len(replay))
"""


def test_a_million_entries_take_little_memory(bench):
    code = MEMORY.format(here=str(Path(__file__).parent), entries=bench.size(1_000_000, 3_000))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    grown, frames, entries = map(int, done.stdout.split())
    per_entry = (grown - frames * 84 * 84) / entries
    bench.report(f"{entries:,} entries, {frames:,} distinct frames: {per_entry:.0f} bytes an entry", bytes=per_entry)
    bench.require(per_entry <= 150)
