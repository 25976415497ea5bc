import csv
from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cfn.truth import TrueCounts, count_errors

SPACE = gym.spaces.Box(0, 255, (2,), np.uint8)
STATES = st.tuples(st.integers(0, 5), st.integers(-3, 3))


def observation(state):
    return np.array(state, np.int64).astype(np.uint8)


@given(st.lists(st.lists(STATES, min_size=2, max_size=2), min_size=1, max_size=40))
def test_it_counts_as_a_counter_does_and_keeps_an_observation_of_each_state(visits):
    truth = TrueCounts(SPACE)
    counter = Counter()
    for states in visits:
        truth.visit(states, np.stack([observation(s) for s in states]))
        counter.update(states)
    assert dict(zip(truth.states, truth.counts.tolist(), strict=True)) == counter
    assert len(truth) == len(counter)
    assert (truth.examples == np.stack([observation(s) for s in truth.states])).all()
    assert truth.true_bonus == pytest.approx([counter[s] ** -0.5 for s in truth.states])


def test_it_grows():
    truth = TrueCounts(SPACE)
    for i in range(2000):
        truth.visit([(i,)], np.full((1, 2), i % 256, np.uint8))
    assert len(truth) == 2000
    assert truth.counts.tolist() == [1] * 2000
    assert truth.examples[1999].tolist() == [1999 % 256] * 2


def test_the_first_observation_is_kept():
    truth = TrueCounts(SPACE)
    truth.visit([(0,)], np.array([[1, 1]], np.uint8))
    truth.visit([(0,)], np.array([[2, 2]], np.uint8))
    assert truth.examples.tolist() == [[1, 1]]


def test_states_in_which_episodes_end_are_seen_but_have_no_count():
    truth = TrueCounts(SPACE)
    truth.visit([(0,)], np.zeros((1, 2), np.uint8))
    truth.arrive([(1,)])
    truth.arrive([(0,)])
    truth.arrive(None)
    assert truth.seen == 2
    assert truth.states == [(0,)]
    other = TrueCounts(SPACE)
    other.load_state_dict(truth.state_dict())
    assert other.seen == 2


@pytest.mark.parametrize("distribution", ["coins", "normal"])
def test_the_floor_is_what_the_coins_leave(distribution):
    rng = np.random.default_rng(0)
    truth, plain = TrueCounts(SPACE), {}
    for _ in range(3000):
        states = [tuple(s) for s in (rng.integers(30, size=(2, 1)) ** 2 // 30).tolist()]
        flips = rng.integers(2, size=(2, 20)) * 2.0 - 1 if distribution == "coins" else rng.normal(size=(2, 20))
        truth.visit(states, np.zeros((2, 2), np.uint8), flips)
        for state, flip in zip(states, flips, strict=True):
            plain.setdefault(state, []).append(flip)
    expected = [np.sqrt(np.mean(np.mean(plain[state], axis=0) ** 2)) for state in truth.states]
    assert truth.floor == pytest.approx(expected)
    assert TrueCounts(SPACE).floor is None


def test_without_states_there_is_nothing_to_count():
    truth = TrueCounts(SPACE)
    truth.visit(None, np.zeros((3, 2), np.uint8))
    assert len(truth) == 0


def test_the_table_has_a_row_for_each_state(tmp_path):
    truth = TrueCounts(SPACE)
    truth.visit([(1, -2), (3, 4)] * 2 + [(3, 4)] * 2, np.zeros((6, 2), np.uint8))
    truth.write(tmp_path / "counts" / "step_000000006.csv", np.array([0.25, -0.5]))
    with (tmp_path / "counts" / "step_000000006.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["state", "count", "true_bonus", "predicted_bonus"],
        ["1 -2", "2", "0.707107", "0.25"],
        ["3 4", "4", "0.5", "-0.5"],
    ]


def test_its_state_can_be_saved():
    one, other = TrueCounts(SPACE), TrueCounts(SPACE)
    one.visit([(1, 1), (2, 2)], np.array([[1, 1], [2, 2]], np.uint8))
    other.load_state_dict(one.state_dict())
    for truth in (one, other):
        for i in range(300):
            truth.visit([(1, 1), (i, 7)], np.full((2, 2), i % 256, np.uint8))
    assert one.states == other.states
    assert (one.counts == other.counts).all()
    assert (one.examples == other.examples).all()


BONUSES = st.lists(st.floats(0, 1), min_size=3, max_size=30, unique=True)


@settings(deadline=None)
@given(BONUSES, st.floats(0.1, 10), st.floats(-5, 5))
def test_an_affine_image_of_the_truth_has_the_right_shape(true, slope, shift):
    true = np.array(true)
    errors = count_errors(slope * true + shift, true)
    assert errors["bonus/mse"] == pytest.approx(np.mean((slope * true + shift - true) ** 2))
    if np.ptp(true) > 1e-3:
        assert errors["bonus/affine_mse"] == pytest.approx(0, abs=1e-9)


def test_errors_equal_plain_versions():
    rng = np.random.default_rng(0)
    predicted, true = rng.random(50), rng.random(50)
    errors = count_errors(predicted, true)
    slope, shift = np.polyfit(predicted, true, 1)
    assert errors["bonus/affine_mse"] == pytest.approx(np.mean((slope * predicted + shift - true) ** 2))
    assert errors["bonus/spearman"] == pytest.approx(stats.spearmanr(predicted, true).statistic)
    assert errors["bonus/affine_mse"] <= errors["bonus/mse"]


def test_a_constant_has_no_order():
    errors = count_errors(np.zeros(4), np.array([1.0, 0.5, 0.5, 0.25]))
    assert "bonus/spearman" not in errors
    assert errors["bonus/affine_mse"] == pytest.approx(np.var([1.0, 0.5, 0.5, 0.25]))


def test_rooms_are_known_by_their_first_image():
    space = gym.spaces.Box(0, 255, (2, 2), np.uint8)
    truth = TrueCounts(space, ("x", "y", "room"))
    for number, state in enumerate([(0, 0, 5), (1, 0, 5), (0, 0, 2), (0, 0, 5)]):
        truth.visit([state], np.full((1, 2, 2), number, np.uint8))
    assert {room: int(image[0, 0]) for room, image in truth.rooms.items()} == {5: 0, 2: 2}
    assert TrueCounts(space).rooms == {}
