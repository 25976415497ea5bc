import copy

import numpy as np
import pytest

from cfn.replay.coins import CoinReplay, _groups
from cfn.replay.frames import FrameStore


def filled(capacity=50, d=20, entries=40, distinct=7, seed=0, **keys):
    rng = np.random.default_rng(seed)
    store = FrameStore((1,), np.int64)
    replay = CoinReplay(capacity, d, store, **keys)
    record = []
    for _ in range(entries):
        number = int(rng.integers(distinct))
        flips = rng.integers(2, size=d) * 2.0 - 1 if keys.get("coins", True) else rng.normal(size=d)
        slot = store.put(np.array([number]))
        replay.add(np.array([slot]), flips[None].astype(np.float32))
        record.append((number, flips.astype(np.float32)))
    return replay, record


@pytest.mark.parametrize("coins", [True, False])
@pytest.mark.parametrize("d", [1, 7, 8, 20])
def test_folding_is_grouping_by_frame(coins, d):
    replay, record = filled(d=d, coins=coins)
    batch = replay.sample(64, np.random.default_rng(1))
    assert len(set(batch.slots.tolist())) == len(batch.slots)
    assert batch.repeats.sum() == 64
    for k, slot in enumerate(batch.slots):
        number = int(replay.frames[slot][0])
        members = batch.entries[batch.inverse == k]
        assert all(record[entry][0] == number for entry in members)
        assert len(members) == batch.repeats[k]
        assert batch.mean_flips[k] == pytest.approx(np.mean([record[e][1] for e in members], axis=0), abs=1e-6)
    assert (batch.frames == replay.frames[batch.slots]).all()
    squares = np.mean([record[entry][1] ** 2 for entry in batch.entries])
    assert batch.flips_square == pytest.approx(squares, rel=1e-5)


def test_the_oldest_make_room_and_let_their_frames_go():
    replay, record = filled(capacity=10, entries=95, distinct=1000)
    assert len(replay) == 10
    assert len(replay.frames) == len({number for number, _ in record[-10:]})
    batch = replay.sample(500, np.random.default_rng(0))
    numbers = {int(n) for n in replay.frames[batch.slots][:, 0]}
    assert numbers == {number for number, _ in record[-10:]}


def test_priorities_follow_the_paper():
    replay, _ = filled(capacity=16, entries=16, alpha=0.25)
    assert replay._tree[np.arange(16)].tolist() == [1.0] * 16
    batch = replay.sample(8, np.random.default_rng(0))
    novelty = np.linspace(0.1, 0.9, len(batch.slots))
    replay.update_priorities(batch, novelty)
    for entry in range(16):
        uses = int((batch.entries == entry).sum())
        expected = 1.0
        if uses:
            expected = 0.25 / (uses + 1) + 0.75 * novelty[batch.inverse[batch.entries == entry][0]]
        assert replay._tree[np.array([entry])][0] == pytest.approx(expected)


def test_what_was_overwritten_since_it_was_sampled_keeps_its_own_priority():
    replay, _ = filled(capacity=16, entries=16)
    batch = replay.sample(100, np.random.default_rng(0))
    assert {0, 1, 2} < set(batch.entries.tolist())
    for number in (50, 51):
        replay.add(np.array([replay.frames.put(np.array([number]))]), np.ones((1, 20), np.float32))
    replay.update_priorities(batch, np.zeros(len(batch.slots)))
    assert replay._tree[np.arange(3)].tolist() == [1.0, 1.0, 0.5 / (1 + (batch.entries == 2).sum())]
    assert replay._updates[:2].tolist() == [0, 0]


def test_without_priorities_sampling_is_uniform():
    replay, _ = filled(capacity=16, entries=16, prioritize=False)
    for _ in range(5):
        batch = replay.sample(8, np.random.default_rng(0))
        replay.update_priorities(batch, np.zeros(len(batch.slots)))
    counts = np.bincount(replay.sample(16_000, np.random.default_rng(1)).entries, minlength=16)
    assert ((counts - 1000) ** 2 / 1000).sum() < 37.7, "chi-square, 15 degrees of freedom, p = 0.001"


def test_an_entry_takes_few_bytes():
    replay = CoinReplay(2**16, 20, FrameStore((84, 84), np.uint8))
    arrays = (replay._slots, replay._flips, replay._updates, replay._tree._tree)
    assert sum(array.nbytes for array in arrays) / 2**16 <= 32


def test_its_state_can_be_saved():
    one, _ = filled(entries=70)
    other, _ = filled(entries=3, seed=9)
    for replay in (one,):
        batch = replay.sample(16, np.random.default_rng(3))
        replay.update_priorities(batch, np.linspace(0, 1, len(batch.slots)))
    other.load_state_dict(one.state_dict())
    other.frames.load_state_dict(one.frames.state_dict())
    for replay in (one, other):
        slot = replay.frames.put(np.array([5]))
        replay.add(np.array([slot]), np.ones((1, 20), np.float32))
    a, b = (replay.sample(32, np.random.default_rng(4)) for replay in (one, other))
    assert (a.entries == b.entries).all()
    assert (a.mean_flips == b.mean_flips).all()
    assert (one.frames[a.slots] == other.frames[b.slots]).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"entries": np.array([0, 500])},
        {"entries": np.array([0])},
        {"drawn": 99},
        {"flips_square": 1},
        {"features": np.zeros((1, 3), np.float32)},
        {"mean_flips": np.zeros((9, 20), np.float32)},
    ],
    ids=str,
)
def test_a_batch_that_was_not_drawn_here_is_refused(changes):
    replay, _ = filled()
    batch = replay.sample(2, np.random.default_rng(1))
    assert replay.as_batch(*batch) == batch
    with pytest.raises(ValueError, match="a saved batch"):
        replay.as_batch(*batch._replace(**changes))


def test_a_state_that_holds_another_number_of_entries_is_refused():
    state = filled(entries=5)[0].state_dict()
    with pytest.raises(ValueError, match="has 5 entries instead of 9"):
        filled(entries=0)[0].load_state_dict(state | {"added": 9})


def test_entries_are_grouped_by_frame_and_action():
    rng, store = np.random.default_rng(0), FrameStore((1,), np.int64)
    replay, record = CoinReplay(50, 4, store, actions=3), []
    for _ in range(40):
        number, action = int(rng.integers(5)), int(rng.integers(3))
        flips = rng.integers(2, size=(1, 4)).astype(np.float32) * 2 - 1
        replay.add(np.array([store.put(np.array([number]))]), flips, np.array([action]))
        record.append((number, action, flips[0]))
    batch = replay.sample(64, np.random.default_rng(1))
    for k, key in enumerate(batch.slots.tolist()):
        pair = (int(batch.frames[k][0]), key % 3)
        members = batch.entries[batch.inverse == k]
        assert all(record[entry][:2] == pair for entry in members)
        assert batch.mean_flips[k] == pytest.approx(np.mean([record[e][2] for e in members], axis=0), abs=1e-6)
    other = CoinReplay(50, 4, store, actions=3)
    other.load_state_dict(copy.deepcopy(replay.state_dict()))
    again = other.sample(64, np.random.default_rng(1))
    assert (again.slots == batch.slots).all()


def by_novelty(capacity, seed=5):
    store = FrameStore((1,), np.int64)
    return CoinReplay(capacity, 4, store, eviction="novelty", rng=np.random.default_rng(seed))


def visit(replay, number):
    slot = replay.frames.put(np.array([number]))
    replay.add(np.array([slot]), np.ones((1, 4), np.float32))


def learn(replay, rng):
    """Give every sampled entry the novelty of a perfect network: one over the number of its state's entries."""
    batch = replay.sample(64, rng)
    entries = {slot: int((replay._slots[: len(replay)] == slot).sum()) for slot in batch.slots.tolist()}
    replay.update_priorities(batch, np.array([1 / entries[slot] for slot in batch.slots.tolist()]))


def numbers(replay):
    return replay.frames[replay._slots[: len(replay)]][:, 0]


def test_eviction_by_novelty_keeps_states_that_are_no_longer_visited():
    replay, ring, rng = by_novelty(60), CoinReplay(60, 4, FrameStore((1,), np.int64)), np.random.default_rng(0)
    for number in [0] * 20 + [1] * 20 + [2 + k % 4 for k in range(600)]:
        for buffer in (replay, ring):
            visit(buffer, number)
            learn(buffer, rng)
    kept = np.bincount(numbers(replay), minlength=6)
    assert kept.min() >= 8, "six states share 60 entries about equally"
    assert set(numbers(ring).tolist()) == {2, 3, 4, 5}, "a ring forgets"


def test_an_entry_that_was_evicted_after_sampling_keeps_its_new_priority():
    replay, rng = by_novelty(8), np.random.default_rng(0)
    for number in range(8):
        visit(replay, number)
    batch = replay.sample(64, rng)
    replay._tree[np.array([3])] = np.array([1e-9])
    while replay._born[3] < 8:  # until it is among the candidates
        visit(replay, 9)
    replay.update_priorities(batch, np.full(len(batch.slots), 0.5))
    assert replay._tree[np.array([3])][0] == 1.0


def test_a_buffer_with_eviction_by_novelty_can_be_saved():
    one, rng = by_novelty(20), np.random.default_rng(0)
    for number in range(50):
        visit(one, number % 9)
        learn(one, rng)
    other = CoinReplay(20, 4, one.frames, eviction="novelty", rng=copy.deepcopy(one._rng))
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for number in range(30):
        assert one._next_entry() == other._next_entry()
        for buffer in (one, other):
            visit(buffer, number)
    assert (one._born == other._born).all()


@pytest.mark.parametrize("actions", [1, 3])
def test_eviction_by_novelty_knows_how_many_entries_each_frame_has(actions):
    rng, store = np.random.default_rng(0), FrameStore((1,), np.int64)
    keys = {"eviction": "novelty", "actions": actions}
    one = CoinReplay(12, 4, store, rng=np.random.default_rng(1), **keys)
    for _ in range(200):
        slot, action = store.put(np.array([int(rng.integers(30))])), np.array([int(rng.integers(actions))])
        one.add(np.array([slot]), np.ones((1, 4), np.float32), action)
        held, counts = np.unique(one._keys(np.arange(len(one))), return_counts=True)
        assert one._repeats[held].tolist() == counts.tolist()
        assert one._repeats.sum() == len(one)
    other = CoinReplay(12, 4, store, rng=np.random.default_rng(1), **keys)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    assert other._repeats[held].tolist() == counts.tolist()


def test_eviction_by_novelty_prefers_the_priorities_of_frames_that_were_seen_once():
    replay = by_novelty(4)
    for number in range(4):
        visit(replay, number)
    replay._tree[np.arange(4)] = np.array([0.9, 0.8, 0.1, 0.7])
    assert replay._next_entry() == 2


@pytest.mark.parametrize("keys", [[3], [5, 5, 5], [9, 2, 9, 4, 2, 9]])
def test_equal_keys_are_grouped_as_by_numpy(keys):
    keys = np.array(keys, np.int32)
    expected = np.unique(keys, return_inverse=True, return_counts=True)
    for ours, theirs in zip(_groups(keys, np.argsort(keys)), expected, strict=True):
        assert ours.tolist() == theirs.tolist()
