"""What the compressed frame store costs, in bytes and in time, on real frames of Montezuma's Revenge."""

import hashlib
import itertools
import os
import statistics
import time
from pathlib import Path

import numpy as np
import pytest

from cfn.envs.atari import make
from cfn.replay.coins import CoinReplay
from cfn.replay.frames import FrameStore

BATCH, D = 512, 20


def played():
    """Frames, without end, of a policy that keeps an action for a while and so gets around."""
    env, rng, action = make(), np.random.default_rng(0), 0
    for episode in itertools.count():
        frame, ended = env.reset(seed=episode)[0], False
        while not ended:
            yield frame
            action = int(rng.integers(18)) if rng.random() < 0.15 else action
            frame, _, terminated, truncated, _ = env.step(action)
            ended = terminated or truncated


def resident():
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.bench
def test_reading_and_adding_frames():
    store, rng = FrameStore((84, 84), np.uint8), np.random.default_rng(0)
    slots, adding, reading = [], [], []
    for frame in itertools.islice(played(), 20_000):
        start = time.perf_counter()
        slots.append(store.put(frame))
        adding.append(time.perf_counter() - start)
    for _ in range(50):
        chosen = rng.choice(slots, BATCH)
        start = time.perf_counter()
        store[chosen]
        reading.append(time.perf_counter() - start)
    add, read = statistics.median(adding[-5000:]), statistics.median(reading)
    times = f"adding a frame {add * 1e6:.0f} us, reading {BATCH} of {len(store):,} frames {read * 1e3:.1f} ms"
    print(f"\nMontezuma: {times}")
    assert add <= 60e-6
    assert read <= 5e-3


@pytest.mark.bench
def test_the_coin_flip_buffer_of_montezuma_takes_700_bytes_an_entry():
    """Frame, coins, cached prior, priority, counts and index together: what the process grows by."""
    steps, rng = 200_000, np.random.default_rng(0)
    frames = played()
    next(frames)  # the emulator is there
    before = resident()
    store = FrameStore((84, 84), np.uint8)
    store.keep_features(D)
    replay = CoinReplay(steps, D, store)
    hashes = np.zeros((steps, 8), np.uint8)
    slots = np.zeros(steps, np.int64)
    for i, frame in enumerate(itertools.islice(frames, steps)):
        slots[i] = store.put(frame)
        store.features[slots[i]] = i
        replay.add(slots[i : i + 1], np.sign(rng.random((1, D)) - 0.5))
        hashes[i] = np.frombuffer(hashlib.blake2b(frame.data, digest_size=8).digest(), np.uint8)
    taken = (resident() - before - hashes.nbytes - slots.nbytes) / steps
    print(f"\nMontezuma: {steps:,} entries, {len(store):,} distinct frames: {taken:.0f} bytes an entry")
    assert taken <= 700
    for i in rng.choice(steps, 20_000, replace=False):
        (frame,) = store[slots[i : i + 1]]
        assert hashlib.blake2b(frame.data, digest_size=8).digest() == hashes[i].tobytes()
