import numpy as np

from cfn.replay.frames import FrameStore
from cfn.replay.recorder import Recorder
from cfn.replay.transitions import TransitionReplay

NO, YES = np.zeros(2, np.bool_), np.ones(2, np.bool_)


def looks(*numbers):
    return np.array([[float(number)] for number in numbers])


def recorded():
    """Two environments, in each of which two steps wait for a third."""
    replay = TransitionReplay(10, 1, FrameStore((1,), np.float64), np.zeros((), np.int64))
    recorder = Recorder(replay, num_envs=2, n_step=3, gamma=0.5)
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
