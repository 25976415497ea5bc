import numpy as np
import pytest

from cfn.replay.frames import FrameStore
from cfn.replay.recorder import Recorder
from cfn.replay.transitions import TransitionReplay

NO, YES = np.zeros(2, np.bool_), np.ones(2, np.bool_)


def looks(*numbers):
    return np.array([[float(number)] for number in numbers])


def recorded(**keys):
    """Two environments, in each of which two steps wait for a third."""
    replay = TransitionReplay(10, 1, FrameStore((1,), np.float64), np.zeros((), np.int64))
    recorder = Recorder(replay, num_envs=2, n_step=3, gamma=0.5, **keys)
    for now in (0, 1):
        recorder.add(looks(now, 10 + now), np.zeros(2, int), np.ones(2), looks(now + 1, 11 + now), NO, NO)
    return recorder, replay


def transitions(replay):
    batch = replay.sample(200, np.random.default_rng(0))
    columns = (batch.states[:, 0], batch.rewards, batch.discounts, batch.next_states[:, 0])
    return set(zip(*(column.tolist() for column in columns), strict=True))


def test_an_episode_that_is_cut_off_leads_no_further():
    recorder, replay = recorded()
    recorder.cut(np.array([True, False]))
    assert transitions(replay) == {(0, 1.5, 0.25, 2), (1, 1, 0.5, 2)}, "what was seen is kept"
    recorder.add(looks(50, 12), np.zeros(2, int), np.ones(2), looks(51, 13), YES, YES)
    found = transitions(replay)
    assert {(50, 1, 0, 51), (10, 1.75, 0, 13)} < found
    assert {after for state, *_, after in found if state < 10} == {2}, "not to what came of nowhere"


def test_frames_of_an_episode_that_is_cut_off_are_let_go():
    recorder, replay = recorded()
    for _ in range(2):  # the second has nothing left to cut
        recorder.cut(YES)
    for number in range(20, 40, 2):
        recorder.add(looks(number, number), np.zeros(2, int), np.ones(2), looks(number + 1, number + 1), YES, YES)
    assert len(replay.frames) == 10, "five transitions twice"


def test_cut_windows_are_dropped_on_request():
    """The first environment is truncated at its third step, the second terminates there; all rewards are 1."""
    recorder, replay = recorded(keep_cut_windows=False)
    recorder.add(looks(2, 12), np.zeros(2, int), np.ones(2), looks(3, 13), np.array([False, True]), ~NO)
    assert transitions(replay) == {(0, 1.75, 0.125, 3), (10, 1.75, 0, 13), (11, 1.5, 0, 13), (12, 1, 0, 13)}
    assert sorted(replay.frames[np.flatnonzero(replay.frames._references)][:, 0]) == [0, 3, 10, 11, 12, 13]


def test_an_episode_that_is_cut_off_leaves_no_cut_window():
    recorder, replay = recorded(keep_cut_windows=False)
    recorder.cut(np.array([True, False]))
    assert len(replay) == 0
    assert sorted(replay.frames[np.flatnonzero(replay.frames._references)][:, 0]) == [10, 11, 12], "the other's"
    recorder.add(looks(50, 12), np.zeros(2, int), np.ones(2), looks(51, 13), YES, NO)
    assert transitions(replay) == {(50, 1, 0, 51), (10, 1.75, 0, 13), (11, 1.5, 0, 13), (12, 1, 0, 13)}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("stack", [1, 3])
def test_every_reference_to_a_frame_has_a_holder(keep, stack):
    """After many episodes with ends of both kinds, and episodes cut off, only the replay buffer refers to frames."""
    rng = np.random.default_rng(0)
    replay = TransitionReplay(15, stack, FrameStore((1,), np.float64), np.zeros((), np.int64))
    recorder = Recorder(replay, num_envs=2, n_step=3, gamma=0.5, keep_cut_windows=keep)
    shape = (2, 1, stack) if stack > 1 else (2, 1)
    for t in range(200):
        now, after = (rng.integers(8, size=shape).astype(float) for _ in range(2))  # few, so that frames are shared
        ends = rng.random(2)
        recorder.add(now, np.zeros(2, int), np.ones(2), after, ends < 0.2, ends > 0.6)
        if t % 10 == 9:
            recorder.cut(np.array([True, t % 20 == 9]))
    recorder.cut(YES)
    held = np.concatenate([replay._states, replay._next_states]).ravel()
    references = replay.frames._references
    assert references.tolist() == np.bincount(held, minlength=len(references)).tolist()


def test_windows_that_wait_are_saved_with_their_frames():
    """A restored recorder stores and drops what the saved one does, and frees the same frames."""
    (one, before), (other, after) = recorded(keep_cut_windows=False), recorded(keep_cut_windows=False)
    one.add(looks(2, 12), np.zeros(2, int), np.ones(2), looks(3, 13), NO, NO)
    other.load_state_dict(one.state_dict())
    after.load_state_dict(before.state_dict())
    after.frames.load_state_dict(before.frames.state_dict())
    for recorder in (one, other):
        recorder.add(looks(3, 13), np.zeros(2, int), np.ones(2), looks(4, 14), NO, YES)
    assert transitions(before) == transitions(after) == {
        (0, 1.75, 0.125, 3), (1, 1.75, 0.125, 4), (10, 1.75, 0.125, 13), (11, 1.75, 0.125, 14)
    }  # fmt: skip
    references = [replay.frames.state_dict()["references"].tolist() for replay in (before, after)]
    assert references[0] == references[1]
