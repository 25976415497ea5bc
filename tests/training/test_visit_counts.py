import csv
import itertools
from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cfn.training.visit_counts import VisitCounts, arrival_error, bonus_errors, spearman

SPACE = gym.spaces.Box(0, 255, (2,), np.uint8)
STATES = st.tuples(st.integers(0, 5), st.integers(-3, 3))


def observation(state):
    return np.array(state, np.int64).astype(np.uint8)


@given(st.lists(st.lists(STATES, min_size=2, max_size=2), min_size=1, max_size=40))
def test_it_counts_as_a_counter_does_and_keeps_an_observation_of_each_state(visits):
    truth = VisitCounts(SPACE)
    counter = Counter()
    for states in visits:
        truth.visit(states, np.stack([observation(s) for s in states]))
        counter.update(states)
    assert dict(zip(truth.states, truth.counts.tolist(), strict=True)) == counter
    assert len(truth) == len(counter)
    assert (truth.examples == np.stack([observation(s) for s in truth.states])).all()


def test_it_grows():
    truth = VisitCounts(SPACE)
    for i in range(2000):
        truth.visit([(i,)], np.full((1, 2), i % 256, np.uint8))
    assert len(truth) == 2000
    assert truth.counts.tolist() == [1] * 2000
    assert truth.examples[1999].tolist() == [1999 % 256] * 2


def test_the_first_observation_is_kept():
    truth = VisitCounts(SPACE)
    truth.visit([(0,)], np.array([[1, 1]], np.uint8))
    truth.visit([(0,)], np.array([[2, 2]], np.uint8))
    assert truth.examples.tolist() == [[1, 1]]


def test_arrivals_are_counted_apart_from_visits():
    truth = VisitCounts(SPACE)
    path = [(0,), (1,), (0,), (2,)]  # one episode: acted in 0, 1 and 0; arrived in 1, 0 and 2
    for state, following in itertools.pairwise(path):
        truth.visit([state], np.full((1, 2), state[0], np.uint8))
        truth.arrive([following], np.full((1, 2), following[0], np.uint8))
    truth.arrive(None, np.zeros((1, 2), np.uint8))
    assert truth.states == [(0,), (1,), (2,)]
    assert truth.counts.tolist() == [2, 1, 0]
    assert truth.arrivals.tolist() == [1, 1, 1]
    assert truth.examples.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert truth.seen == 3


def test_a_state_of_an_older_checkpoint_has_no_arrivals_and_no_examples_of_ends():
    truth = VisitCounts(SPACE)
    counts, examples = np.array([4]), np.zeros((1, 2), np.uint8)
    truth.load_state_dict({"states": np.array([[0]]), "counts": counts, "examples": examples, "ends": np.array([[7]])})
    assert (truth.seen, truth.states, truth.arrivals.tolist()) == (2, [(0,)], [0])
    again = VisitCounts(SPACE)
    again.load_state_dict(truth.state_dict())
    again.arrive([(7,)], np.ones((1, 2), np.uint8))
    assert (again.seen, again.states, again.arrivals.tolist()) == (2, [(0,), (7,)], [0, 1])


def test_without_states_there_is_nothing_to_count():
    truth = VisitCounts(SPACE)
    truth.visit(None, np.zeros((3, 2), np.uint8))
    assert len(truth) == 0


def test_the_table_has_a_row_for_each_state(tmp_path):
    truth = VisitCounts(SPACE)
    truth.visit([(1, -2), (3, 4)] * 2 + [(3, 4)] * 2, np.zeros((6, 2), np.uint8))
    truth.arrive([(3, 4), (5, 6)], np.zeros((2, 2), np.uint8))
    truth.write(tmp_path / "counts" / "step_000000006.csv", np.array([0.25, -0.5, 1.0]))
    with (tmp_path / "counts" / "step_000000006.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["state", "count", "true_bonus", "predicted_bonus", "arrivals"],
        ["1 -2", "2", "0.707107", "0.25", "0"],
        ["3 4", "4", "0.5", "-0.5", "1"],
        ["5 6", "0", "", "1", "1"],
    ]


def test_its_state_can_be_saved():
    one, other = VisitCounts(SPACE), VisitCounts(SPACE)
    one.visit([(1, 1), (2, 2)], np.array([[1, 1], [2, 2]], np.uint8))
    other.load_state_dict(one.state_dict())
    for truth in (one, other):
        for i in range(300):
            truth.visit([(1, 1), (i, 7)], np.full((2, 2), i % 256, np.uint8))
            truth.arrive([(1, 1), (i, 8)], np.full((2, 2), i % 256, np.uint8))
    assert one.states == other.states
    assert (one.counts == other.counts).all()
    assert (one.arrivals == other.arrivals).all()
    assert (one.examples == other.examples).all()


COUNTS = st.lists(st.integers(1, 10_000), min_size=3, max_size=30, unique=True)


@settings(deadline=None)
@given(COUNTS, st.floats(0.1, 10), st.floats(-5, 5))
def test_an_affine_image_of_the_truth_has_the_right_shape(counts, slope, shift):
    true = np.array(counts) ** -0.5
    errors = bonus_errors(slope * true + shift, np.array(counts))
    assert errors["bonus/mse"] == pytest.approx(np.mean((slope * true + shift - true) ** 2))
    if np.ptp(true) > 1e-3:
        assert errors["bonus/affine_mse"] == pytest.approx(0, abs=1e-9)


def test_errors_equal_plain_versions():
    rng = np.random.default_rng(0)
    predicted, counts = rng.random(50), rng.integers(1, 100, 50)
    true = counts**-0.5
    errors = bonus_errors(predicted, counts)
    slope, shift = np.polyfit(predicted, true, 1)
    assert errors["bonus/affine_mse"] == pytest.approx(np.mean((slope * predicted + shift - true) ** 2))
    assert errors["bonus/spearman"] == pytest.approx(stats.spearmanr(predicted, true).statistic)
    assert errors["bonus/affine_mse"] <= errors["bonus/mse"]


def test_each_error_is_over_the_states_that_its_counts_have():
    predicted, counts, arrivals = np.array([0.5, 1.0, 0.25]), np.array([4, 1, 0]), np.array([0, 4, 1])
    assert bonus_errors(predicted, counts)["bonus/mse"] == 0
    assert arrival_error(predicted, arrivals) == {"bonus/arrival_mse": pytest.approx((0.5**2 + 0.75**2) / 2)}
    assert arrival_error(predicted, np.zeros(3, int)) == {}


def test_a_constant_has_no_order():
    counts = np.array([1, 4, 4, 16])
    errors = bonus_errors(np.zeros(4), counts)
    assert "bonus/spearman" not in errors
    assert errors["bonus/affine_mse"] == pytest.approx(np.var(counts**-0.5))


def test_rooms_are_known_by_their_first_image():
    space = gym.spaces.Box(0, 255, (2, 2), np.uint8)
    truth = VisitCounts(space, ("x", "y", "room"))
    for number, state in enumerate([(0, 0, 5), (1, 0, 5), (0, 0, 2), (0, 0, 5)]):
        truth.visit([state], np.full((1, 2, 2), number, np.uint8))
    assert {room: int(image[0, 0]) for room, image in truth.rooms.items()} == {5: 0, 2: 2}
    assert VisitCounts(space).rooms == {}


def test_pairs_are_counted_by_action_and_seen_by_state():
    truth = VisitCounts(SPACE, pairs=True)
    observation = np.zeros((1, *SPACE.shape), SPACE.dtype)
    for state in [(0, 1), (0, 1), (0, 2), (3, 1)]:
        truth.visit([state], observation)
    assert truth.states == [(0, 1), (0, 2), (3, 1)]
    assert truth.counts.tolist() == [2, 1, 1]
    assert truth.seen == 2


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1)), min_size=2, max_size=60))
def test_the_rank_correlation_is_that_of_scipy(pairs):
    first, second = np.array(pairs, np.float64).T
    if np.ptp(first) > 0 and np.ptp(second) > 0:
        assert spearman(first, second) == stats.spearmanr(first, second).statistic
