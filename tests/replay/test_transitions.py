"""Transitions in and out: nothing of them changes, and no frame outlives them."""

import numpy as np
import pytest
from scipy import stats

from cfn.replay.frames import FrameStore
from cfn.replay.n_step import Transition
from cfn.replay.transitions import TransitionReplay


def frame(number):
    return np.full((2, 2), number, np.uint8)


def filled(entries, capacity=10, stack=3, prioritize=True):
    """A stream of frames 0, 1, 2, ... whose transitions go from one stack to the next."""
    frames = FrameStore((2, 2), np.uint8)
    replay = TransitionReplay(capacity, stack, frames, np.zeros((), np.int64), prioritize)
    state = np.array([frames.put(frame(0))] + [frames.put(frame(0)) for _ in range(stack - 1)])
    for t in range(entries):
        frames.hold(state[1:])
        next_state = np.array([*state[1:], frames.put(frame(t + 1))])
        replay.add(Transition(state, t, float(t), 0.9, next_state))
        state = next_state
    frames.release(state)
    return replay


def set_priorities(replay, entries, priorities):
    """As if these entries had just been sampled."""
    batch = replay.sample(len(entries), np.random.default_rng(0))
    replay.update_priorities(batch._replace(entries=entries), priorities)


@pytest.mark.parametrize("prioritize", [True, False])
def test_stacks_are_rebuilt_as_they_were(prioritize):
    batch = filled(entries=25, prioritize=prioritize).sample(200, np.random.default_rng(0))
    assert batch.states.shape == (200, 2, 2, 3)
    for t, state, reward, after in zip(batch.actions, batch.states, batch.rewards, batch.next_states, strict=True):
        assert reward == t
        assert state[0, 0].tolist() == [max(t - 2, 0), max(t - 1, 0), t]
        assert after[0, 0].tolist() == [max(t - 1, 0), t, t + 1]
    assert set(batch.actions.tolist()) == set(range(15, 25)), "the oldest made room"


def test_frames_alone_come_without_a_stack():
    batch = filled(entries=5, stack=1).sample(8, np.random.default_rng(0))
    assert batch.states.shape == (8, 2, 2)


def test_what_is_overwritten_lets_its_frames_go():
    replay = filled(entries=100, stack=3)
    assert len(replay.frames) == 13, "ten transitions from stacks of three"


def test_sampling_is_proportional_and_weighed():
    replay = filled(entries=4)
    priorities = np.array([1.0, 2.0, 3.0, 4.0])
    set_priorities(replay, np.arange(4), priorities)
    batch = replay.sample(20_000, np.random.default_rng(1))
    found = np.bincount(batch.entries, minlength=4)
    assert stats.chisquare(found, 20_000 * priorities / 10).pvalue > 1e-3
    assert batch.weights == pytest.approx(priorities[batch.entries] ** -0.5, rel=1e-6)


def test_a_new_transition_has_the_highest_priority_there_was():
    replay = filled(entries=4)
    set_priorities(replay, np.arange(4), np.array([0.1, 9.0, 0.1, 0.1]))
    set_priorities(replay, np.array([1]), np.array([0.1]))
    slot = replay.frames.put(frame(99))
    replay.add(Transition(np.full(3, slot), 7, 0.0, 0.0, np.full(3, slot)))
    assert replay._tree[np.array([4])].tolist() == [9.0]


def test_what_was_overwritten_since_it_was_sampled_keeps_its_own_priority():
    replay = filled(entries=10)
    batch = replay.sample(3, np.random.default_rng(0))._replace(entries=np.arange(3))
    slot = replay.frames.put(frame(99))
    replay.add(Transition(np.full(3, slot), 7, 0.0, 0.0, np.full(3, slot)))
    replay.update_priorities(batch, np.array([0.5, 0.25, 0.125]))
    assert replay._tree[np.arange(3)].tolist() == [1.0, 0.25, 0.125]
    set_priorities(replay, np.arange(3), np.array([0.5, 0.25, 0.125]))
    assert replay._tree[np.array([0])].tolist() == [0.5], "none was added since"


def test_its_state_can_be_saved():
    one, other = filled(entries=15), filled(entries=0)
    set_priorities(one, np.arange(10), np.arange(1.0, 11.0))
    other.load_state_dict(one.state_dict())
    other.frames.load_state_dict(one.frames.state_dict())
    for ours, theirs in zip(*(r.sample(32, np.random.default_rng(3)) for r in (one, other)), strict=True):
        assert np.array_equal(ours, theirs)


def test_a_batch_that_was_saved_is_that_batch():
    replay = filled(entries=15)
    batch = replay.sample(6, np.random.default_rng(1))
    assert replay.as_batch(*batch) == batch


@pytest.mark.parametrize(
    "changes",
    [
        {"entries": np.array([0, 500])},
        {"entries": np.array([0, -1])},
        {"entries": np.array([0.0, 1.0])},
        {"entries": np.array([0, 1, 2])},
        {"drawn": 16},
        {"drawn": 0.5},
        {"states": np.zeros((2, 2, 2, 1), np.uint8)},
        {"rewards": [0.0, 0.0]},
    ],
    ids=str,
)
def test_a_batch_that_was_not_drawn_here_is_refused(changes):
    replay = filled(entries=15)
    batch = replay.sample(2, np.random.default_rng(1))
    with pytest.raises(ValueError, match="a saved batch"):
        replay.as_batch(*batch._replace(**changes))


def test_a_state_that_holds_another_number_of_entries_is_refused():
    state = filled(entries=5).state_dict()
    with pytest.raises(ValueError, match="has 5 transitions instead of 9"):
        filled(entries=0).load_state_dict(state | {"added": 9})


def test_only_priorities_are_charged_for_a_tree():
    action = np.zeros(4, np.float32)
    assert TransitionReplay.bytes_of(1, action) - TransitionReplay.bytes_of(1, action, prioritize=False) == 32
