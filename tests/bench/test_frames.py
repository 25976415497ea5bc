"""Cost of the compressed frame store, in bytes and in time, on real frames of Montezuma's Revenge."""

import itertools
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from montezuma import buffer_bytes, played

from cfn.replay.frames import FrameStore

BATCH = 512


def test_reading_and_adding_frames(bench):
    store, rng = FrameStore((84, 84), np.uint8), np.random.default_rng(0)
    slots, adding, reading = [], [], []
    for frame in itertools.islice(played(), bench.size(20_000, 300)):
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
    bench.report(f"Montezuma: {times}", add_seconds=add, read_seconds=read)
    bench.require(add <= 60e-6)
    bench.require(read <= 5e-3)


def test_the_coin_flip_buffer_of_montezuma_takes_700_bytes_an_entry(bench):
    """In a process of its own: this one has memory of the tests before to use again."""
    steps = bench.size(200_000, 300)
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        taken, distinct = process.submit(buffer_bytes, steps).result()
    each = taken / steps
    bench.report(f"Montezuma: {steps:,} entries, {distinct:,} distinct frames: {each:.0f} bytes an entry", bytes=each)
    bench.require(100 <= each <= 700)
