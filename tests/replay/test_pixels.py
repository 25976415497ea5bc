import logging

import numpy as np
import pytest

from cfn.envs.atari import make
from cfn.replay import pixels
from cfn.replay.pixels import PackedPixels


@pytest.fixture(scope="module")
def montezuma():
    """Frames of a thousand random steps."""
    env, rng = make(), np.random.default_rng(0)
    frames = [env.reset(seed=0)[0]]
    while len(frames) < 1000:
        frame, _, terminated, _, _ = env.step(int(rng.integers(18)))
        frames.append(env.reset(seed=1)[0] if terminated else frame)
    env.close()
    return np.array(frames)


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(pixels, "SEGMENT", 20_000)


def fill(packed, frames, first=0):
    for slot, frame in enumerate(frames, first):
        packed[slot] = frame


def test_no_pixel_is_lost_and_little_room_is_taken(montezuma):
    packed = PackedPixels((84, 84))
    packed.train(montezuma[::2])
    fill(packed, montezuma)
    assert (packed[np.arange(1000)] == montezuma).all()
    assert packed._length[:1000].mean() < 450
    assert packed[np.array([[3, 4], [5, 6]])].shape == (2, 2, 84, 84)


def test_a_dictionary_saves_much(montezuma):
    plain, trained = PackedPixels((84, 84)), PackedPixels((84, 84))
    trained.train(montezuma[::2])
    for packed in (plain, trained):
        fill(packed, montezuma)
    assert trained._length.sum() < 0.6 * plain._length.sum()


def test_too_few_frames_for_a_dictionary_are_compressed_without(caplog, montezuma):
    with caplog.at_level(logging.INFO):
        packed = PackedPixels((84, 84))
        packed.train(montezuma[:3])
    fill(packed, montezuma[:3])
    assert (packed[np.arange(3)] == montezuma[:3]).all()
    assert "without a new dictionary, for which 3 of them are too few" in caplog.text


def test_what_is_let_go_makes_room(small_segments, montezuma):
    packed = PackedPixels((84, 84))
    fill(packed, montezuma)
    most = packed.nbytes
    for slot in range(900):
        del packed[slot]
    assert packed.nbytes < most / 5
    assert (packed[np.arange(900, 1000)] == montezuma[900:]).all()


def test_holes_are_closed(small_segments, montezuma):
    """Every fourth frame stays: no segment is ever empty, and yet room is made."""
    packed = PackedPixels((84, 84))
    fill(packed, montezuma)
    most = packed.nbytes
    for slot in range(1000):
        if slot % 4:
            del packed[slot]
    assert packed.nbytes < most / 2
    stay = np.arange(0, 1000, 4)
    assert (packed[stay] == montezuma[stay]).all()


def test_new_scenes_get_a_new_dictionary(monkeypatch, montezuma):
    """On its side the game is another one."""
    monkeypatch.setattr(pixels, "RENEW_AFTER", 400)
    packed = PackedPixels((84, 84))
    packed.train(montezuma[::2])
    first = packed._codec
    fill(packed, montezuma)
    assert packed._codec is first, "nothing new"
    lying = montezuma.transpose(0, 2, 1).copy()
    for start in (1000, 2000, 3000):
        fill(packed, lying, start)
    assert packed._codec is not first
    assert (packed[np.arange(1000)] == montezuma).all(), "what was packed with the old one can still be read"
    assert (packed[np.arange(3000, 4000)] == lying).all()
    assert packed._length[3900:4000].mean() < packed._length[1000:1100].mean()
