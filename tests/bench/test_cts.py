"""Cost of the CTS pseudo-count: at most 1.5 ms of one core per 42x42 frame."""

import time

import gymnasium as gym
import numpy as np
import pytest

from cfn.bonuses.cts import CTSBonus

pytestmark = pytest.mark.bench

FRAMES = 500
LIMIT = 1.5e-3
"""Seconds of CPU time per observed frame."""


def walking_dot(rng):
    frames = np.full((FRAMES, 42, 42), 40, np.uint8)
    for frame, (y, x) in zip(frames, rng.integers(0, 42, (FRAMES, 2)), strict=True):
        frame[y, x] = 255
    return frames


def noise(rng):
    """The worst case: nearly every pixel of every frame has a context that was never seen."""
    return rng.integers(0, 256, (FRAMES, 42, 42)).astype(np.uint8)


@pytest.mark.parametrize("make", [walking_dot, noise])
def test_a_frame_takes_at_most_a_millisecond_and_a_half(make):
    frames = make(np.random.default_rng(0))
    bonus = CTSBonus(gym.spaces.Box(0, 255, (42, 42), np.uint8))
    bonus.observe(frames[:20])  # compiles, or loads the compiled code
    start = time.process_time()
    for frame in frames[20:]:
        bonus.observe(frame[None])
    each = (time.process_time() - start) / (FRAMES - 20)
    print(f"{make.__name__}: {1e3 * each:.2f} ms per frame, {bonus._trees.nodes:,} nodes")
    assert each < LIMIT
