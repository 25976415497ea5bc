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
    replay.update_priorities(np.arange(4), priorities)
    batch = replay.sample(20_000, np.random.default_rng(1))
    found = np.bincount(batch.entries, minlength=4)
    assert stats.chisquare(found, 20_000 * priorities / 10).pvalue > 1e-3
    assert batch.weights == pytest.approx(priorities[batch.entries] ** -0.5, rel=1e-6)


def test_a_new_transition_has_the_highest_priority_there_was():
    replay = filled(entries=4)
    replay.update_priorities(np.arange(4), np.array([0.1, 9.0, 0.1, 0.1]))
    replay.update_priorities(np.array([1]), np.array([0.1]))
    slot = replay.frames.put(frame(99))
    replay.add(Transition(np.full(3, slot), 7, 0.0, 0.0, np.full(3, slot)))
    assert replay._tree[np.array([4])].tolist() == [9.0]


def test_its_state_can_be_saved():
    one, other = filled(entries=15), filled(entries=0)
    one.update_priorities(np.arange(10), np.arange(1.0, 11.0))
    other.load_state_dict(one.state_dict())
    other.frames.load_state_dict(one.frames.state_dict())
    for ours, theirs in zip(*(r.sample(32, np.random.default_rng(3)) for r in (one, other)), strict=True):
        assert (ours == theirs).all()
