"""Cost of the CTS pseudo-count: at most 1.5 ms of one core per 42x42 frame."""

import time

import gymnasium as gym
import numpy as np
import pytest

from cfn.bonuses.cts import CTSBonus

LIMIT = 1.5e-3
"""Seconds of CPU time per observed frame."""


def walking_dot(rng, count):
    frames = np.full((count, 42, 42), 40, np.uint8)
    for frame, (y, x) in zip(frames, rng.integers(0, 42, (count, 2)), strict=True):
        frame[y, x] = 255
    return frames


def noise(rng, count):
    """The worst case: nearly every pixel of every frame has a context that was never seen."""
    return rng.integers(0, 256, (count, 42, 42)).astype(np.uint8)


@pytest.mark.parametrize("make", [walking_dot, noise])
def test_a_frame_takes_at_most_a_millisecond_and_a_half(make, bench):
    frames = make(np.random.default_rng(0), bench.size(500, 22))
    bonus = CTSBonus(gym.spaces.Box(0, 255, (42, 42), np.uint8))
    bonus.observe(frames[:20])  # compiles, or loads the compiled code
    start = time.process_time()
    for frame in frames[20:]:
        bonus.observe(frame[None])
    each = (time.process_time() - start) / (len(frames) - 20)
    name = make.__name__.replace("_", " ")
    bench.report(f"CTS, {name}: {1e3 * each:.2f} CPU ms per frame, {bonus._trees.nodes:,} nodes", seconds=each)
    bench.require(each < LIMIT)
