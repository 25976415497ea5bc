import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfn.replay import frames, pixels
from cfn.replay.content_index import content_digest
from cfn.replay.frames import FrameStore


def frame(number):
    return np.full((2, 3), number, np.uint8)


COMPRESSED = (0, 18, 2**20)  # from the first frame on, from the fourth, and never


@settings(deadline=None)  # the first example compiles
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=200), st.sampled_from(COMPRESSED))
def test_it_holds_each_distinct_frame_once_for_as_long_as_somebody_does(actions, raw_bytes):
    store = FrameStore((2, 3), np.uint8, raw_bytes)
    store.keep_features(1)
    held: list[tuple[int, int]] = []
    for put, number in actions:
        if put:
            slot = store.put(frame(number))
            assert np.isnan(store.features[slot, 0]) == (number not in [n for n, _ in held]), "new frames have none"
            store.features[slot] = number
            held.append((number, slot))
        elif held:
            _, slot = held.pop(number % len(held))
            store.release(np.array([slot]))
        assert len(store) == len({n for n, _ in held})
        for n, slot in held:
            assert (store[np.array([slot])][0] == frame(n)).all()
            assert store.features[slot, 0] == n
            assert store.find(frame(n)) == slot
    numbers = {n for n, _ in held}
    assert all(store.find(frame(n)) is None for n in range(10) if n not in numbers)


def test_freed_slots_are_used_again():
    store = FrameStore((2, 3), np.uint8)
    for i in range(5000):
        slot = store.put(frame(i % 256))
        store.release(np.array([slot]))
    assert slot < 4
    assert len(store) == 0


@pytest.fixture
def hashed(monkeypatch):
    """The contents that are hashed, one by one."""
    contents = []
    monkeypatch.setattr(frames, "content_digest", lambda content: contents.append(content) or content_digest(content))
    return contents


@pytest.mark.parametrize("num_envs", [1, 4, frames.RECENT])
def test_a_frame_of_the_agent_is_not_hashed_again_for_the_bonus(hashed, num_envs):
    """Each step the bonus puts the frames that the agent has put at the end of the step before."""
    store = FrameStore((2, 3), np.uint8)
    for step in range(5):
        looks = [frame(num_envs * step + i) for i in range(num_envs)]
        slots = [store.put(look) for look in looks]
        assert len(hashed) == num_envs * (step + 1)
        assert [store.put(look.copy()) for look in looks] == slots
        assert [store.find(look) for look in looks] == slots
        assert len(hashed) == num_envs * (step + 1), "no frame is hashed again"


def test_hashes_of_few_frames_are_remembered(hashed):
    store = FrameStore((2, 3), np.uint8)
    numbers = [*range(frames.RECENT + 1), 0, 0]
    slots = [store.put(frame(n)) for n in numbers]
    assert slots[-3:] == [frames.RECENT, 0, 0]
    assert len(hashed) == frames.RECENT + 2, "the first had been forgotten, and is then remembered again"
    assert len(store._recent) == frames.RECENT


def test_it_grows_by_little_and_keeps_what_it_has(monkeypatch):
    monkeypatch.setattr(pixels, "GROWTH", 4000)
    store = FrameStore((4,), np.uint16)
    store.keep_features(2)
    images = np.random.default_rng(0).integers(2**16, size=(3000, 4), dtype=np.uint16)
    slots = np.array([store.put(image) for image in images])
    store.features[slots] = images[:, :2]
    slots = np.concatenate([slots, [store.put(image + 1) for image in images]])
    assert (store[slots] == np.concatenate([images, images + 1])).all()
    assert (store.features[slots[:3000]] == images[:, :2]).all()
    assert np.isnan(store.features[slots[3000:]]).all()
    assert len(store._pixels._frames) <= 6000 + 4000 // 8


@pytest.mark.parametrize("raw_bytes", COMPRESSED)
def test_its_state_can_be_saved(raw_bytes):
    one, other = (FrameStore((2, 3), np.uint8, raw_bytes) for _ in range(2))
    one.keep_features(2)
    slots = [one.put(frame(n)) for n in (1, 2, 3, 2)]
    one.features[slots[0]] = 7
    one.release(np.array(slots[2:3]))
    other.load_state_dict(one.state_dict())
    for store in (one, other):
        assert store.put(frame(4)) == slots[2], "the free slot is taken"
        assert store.put(frame(1)) == slots[0]
        store.release(np.array(slots[1:2]))
        assert store.find(frame(2)) == slots[1]
        assert (store[np.array(slots[:2])] == [frame(1), frame(2)]).all()
        assert store.features[slots[0]].tolist() == [7, 7]


def test_its_state_can_be_saved_when_only_late_slots_are_held():
    one, other = (FrameStore((4,), np.uint16) for _ in range(2))
    slots = np.array([one.put(np.full(4, n, np.uint16)) for n in range(1000)])
    one.release(slots[:-1])
    other.load_state_dict(one.state_dict())
    assert (other[slots[-1:]] == 999).all()
    assert len(other) == 1


def test_frames_can_be_held_many_times_at_once():
    store = FrameStore((2, 3), np.uint8)
    slot = store.put(frame(1))
    store.hold(np.array([slot, slot]))
    store.release(np.array([slot, slot]))
    assert store.find(frame(1)) == slot
    store.release(np.array([slot]))
    assert len(store) == 0


@pytest.mark.parametrize(
    ("part", "value", "sentence"),
    [
        ("index", {"digests": np.zeros(3, np.int64)}, "pairs of 64-bit integers"),
        ("index", {"digests": np.zeros((3, 1), np.int64)}, "pairs of 64-bit integers"),
        ("index", {"digests": np.zeros((3, 2), np.int32)}, "pairs of 64-bit integers"),
        ("references", np.zeros(4, np.int32), "differ in length"),
        ("references", np.array([1, -1, 1], np.int32), "free slots"),
        ("free", np.array([10**9]), "free slots"),
        ("free", np.array([2, 2]), "free slots"),
    ],
)
def test_a_state_that_nobody_here_wrote_is_refused(part, value, sentence):
    one = FrameStore((2, 3), np.uint8)
    slots = [one.put(frame(n)) for n in range(3)]
    one.release(np.array(slots[2:]))
    state = one.state_dict()
    FrameStore((2, 3), np.uint8).load_state_dict(state)
    with pytest.raises(ValueError, match=sentence):
        FrameStore((2, 3), np.uint8).load_state_dict(state | {part: value})


def test_what_a_frame_is_reckoned_to_take_grows_with_it():
    small, atari, large, vector = (
        FrameStore.bytes_of(shape, dtype) - frames.OVERHEAD
        for shape, dtype in [((14, 14), np.uint8), ((84, 84), np.uint8), ((210, 160), np.uint8), ((30,), np.float64)]
    )
    assert (small, atari, vector) == (14 * 14, 450, 240)
    assert large == pytest.approx(450 * 210 * 160 / 84**2, abs=1)
