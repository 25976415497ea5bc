"""What the compressed frame store costs, in bytes and in time, on real frames of Montezuma's Revenge."""

import statistics
import time

import numpy as np
import pytest

from cfn.envs.atari import make
from cfn.replay.frames import FrameStore

STEPS, BATCH = 20_000, 512


@pytest.fixture(scope="module")
def played():
    """Frames of a policy that keeps an action for a while, and so gets around."""
    env, rng, action, episodes = make(), np.random.default_rng(0), 0, 1
    frames = [env.reset(seed=0)[0]]
    while len(frames) < STEPS:
        action = int(rng.integers(18)) if rng.random() < 0.15 else action
        frame, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            frame, episodes = env.reset(seed=episodes)[0], episodes + 1
        frames.append(frame)
    env.close()
    return frames


@pytest.mark.bench
def test_reading_and_adding_frames(played):
    store, rng = FrameStore((84, 84), np.uint8), np.random.default_rng(0)
    slots, adding = [], []
    for frame in played:
        start = time.perf_counter()
        slots.append(store.put(frame))
        adding.append(time.perf_counter() - start)
    reading = []
    for _ in range(50):
        chosen = rng.choice(slots, BATCH)
        start = time.perf_counter()
        store[chosen]
        reading.append(time.perf_counter() - start)
    add, read = statistics.median(adding[-5000:]), statistics.median(reading)
    print(
        f"\nMontezuma: adding a frame {add * 1e6:.0f} us, reading {BATCH} of {len(store):,} frames {read * 1e3:.1f} ms"
    )
    assert add <= 60e-6
    assert read <= 5e-3
    sample = rng.choice(STEPS, 1000)
    assert (store[np.array(slots)[sample]] == np.array(played)[sample]).all()
