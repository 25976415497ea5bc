"""The streams: what they show and how often."""

import numpy as np
import pytest

from cfn.exam import streams


@pytest.mark.parametrize("make", [streams.gridworld_walk, streams.taxi_walk, streams.zipf_one_hot, streams.blobs])
def test_observations_belong_to_the_space_and_tell_states_apart(make):
    stream = make(300, np.random.default_rng(0))
    assert len(stream.visits) == 300
    states, counts = stream.counts()
    assert counts.sum() == 300
    looks = [stream.look(int(state), np.random.default_rng(1)) for state in states]
    assert all(stream.space.contains(look) for look in looks)
    assert len({look.tobytes() for look in looks}) == len(states)


def test_the_same_seed_gives_the_same_stream():
    walks = [streams.gridworld_walk(100, np.random.default_rng(seed)).visits for seed in (0, 0, 1)]
    assert walks[0] == walks[1]
    assert walks[0] != walks[2]


def test_noise_is_new_at_every_visit_and_leaves_the_state_alone():
    stream, rng = streams.cells("noise", [], noise=0.25), np.random.default_rng(0)
    one, two = stream.look(5, rng), stream.look(5, rng)
    clean = streams.PIXELS * 3 // 4
    assert (one[:clean] == two[:clean]).all()
    assert (one[clean:] != two[clean:]).any()
    last = streams.GRID * (streams.GRID - streams.rows_of_noise(0.25)) - 1
    assert stream.look(last, rng)[:clean].any()
    assert not stream.look(last + 1, rng)[:clean].any()


def test_repeated_visits_have_the_counts():
    visits = streams.repeated([3, 1, 2], [7, 8, 9], np.random.default_rng(0))
    assert sorted(visits) == [7, 7, 7, 8, 9, 9]
