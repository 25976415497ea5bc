import logging

import numpy as np
import pytest
import zstandard

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


def room(packed):
    """Bytes of the segments."""
    return sum(segment.nbytes for segment in packed._segments if segment is not None)


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
    assert "3 frames are too few to train a compression dictionary" in caplog.text


def test_what_is_let_go_makes_room(small_segments, montezuma):
    packed = PackedPixels((84, 84))
    fill(packed, montezuma)
    most = room(packed)
    for slot in range(900):
        del packed[slot]
    assert room(packed) < most / 5
    assert (packed[np.arange(900, 1000)] == montezuma[900:]).all()


def test_holes_are_closed(small_segments, montezuma):
    """Every fourth frame stays: no segment is ever empty, and yet room is made."""
    packed = PackedPixels((84, 84))
    fill(packed, montezuma)
    most = room(packed)
    for slot in range(1000):
        if slot % 4:
            del packed[slot]
    assert room(packed) < most / 2
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
    for slot in range(1000):
        del packed[slot]
    assert first not in packed._codecs, "nothing needs the old one any more"
    assert all(saved is not first.dictionary for saved in packed.state_dict(4000)["dictionaries"])


def test_a_segment_is_moved_in_small_blocks(small_segments, monkeypatch):
    """Frames that are alike compress to almost nothing, so a segment has very many of them."""
    monkeypatch.setattr(pixels, "MOVE_BLOCK", 16)
    packed, read = PackedPixels((84, 84)), []
    frames = [np.full((84, 84), number, np.uint8) for number in range(250)]
    for start in range(0, 2000, 250):
        fill(packed, frames, start)
    unpack = PackedPixels.__getitem__
    monkeypatch.setattr(PackedPixels, "__getitem__", lambda self, slots: read.append(len(slots)) or unpack(self, slots))
    for slot in range(0, 2000, 2):
        del packed[slot]
    assert sum(read) > 200, "much was moved"
    assert max(read) <= 16
    assert (packed[np.arange(1, 250, 2)] == frames[1:250:2]).all()


def altered(state, slot, data):
    """The state, in which a slot has other compressed bytes, in a segment of their own."""
    segment, start, length = (array.copy() for array in state["where"])
    segment[slot], start[slot], length[slot] = len(state["segments"]), 0, len(data)
    more = {"segments": [*state["segments"][:-1], state["segments"][-1].copy(), np.frombuffer(data, np.uint8)]}
    counters = [len(data), *state["counters"][1:]]
    codecs = [*state["codecs"], state["codecs"][-1]]
    return {**state, **more, "where": [segment, start, length], "counters": counters, "codecs": codecs}


def test_frames_that_claim_a_size_are_refused_when_they_are_loaded(montezuma):
    """Whatever a frame claims would be made room for, however much."""
    packed, other = PackedPixels((84, 84)), PackedPixels((84, 84))
    fill(packed, montezuma[:9])
    state = packed.state_dict(9)
    fine = zstandard.ZstdCompressor(write_content_size=False).compress(montezuma[20].tobytes())
    other.load_state_dict(altered(state, 3, fine))
    assert (other[np.arange(3)] == montezuma[:3]).all()
    assert (other[np.array([3])] == montezuma[20]).all()
    for length in (84 * 84, 10**8):
        bomb = zstandard.ZstdCompressor().compress(bytes(length))
        with pytest.raises(ValueError, match="a compressed frame declares its own size"):
            PackedPixels((84, 84)).load_state_dict(altered(state, 3, bomb))


@pytest.mark.parametrize(("which", "value"), [(1, -1), (1, 2**31 - 1), (2, 2**31 - 1), (2, 0)])
def test_frames_outside_of_their_segment_are_refused(montezuma, which, value):
    packed = PackedPixels((84, 84))
    fill(packed, montezuma[:9])
    state = packed.state_dict(9)
    state["where"] = [array.copy() for array in state["where"]]
    state["where"][which][4] = value
    with pytest.raises(ValueError, match="lies outside of its segment"):
        PackedPixels((84, 84)).load_state_dict(state)


def test_an_empty_store_of_compressed_frames_can_be_loaded():
    packed = PackedPixels((84, 84))
    packed.load_state_dict(PackedPixels((84, 84)).state_dict(0))
    fill(packed, np.zeros((1, 84, 84), np.uint8))
    assert not packed[np.arange(1)].any()
