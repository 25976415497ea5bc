import numpy as np
import pytest
import torch
from asynchrony import pretend_gpu
from hypothesis import given
from hypothesis import strategies as st

from cfn.errors import UsageError
from cfn.tracking.statistics import EpisodeStatistics, Means, finite

STEP = st.tuples(st.floats(-5, 5), st.floats(0, 1), st.booleans())


@given(st.lists(st.lists(STEP, min_size=3, max_size=3), max_size=40))
def test_episodes_add_up_as_in_a_plain_loop(steps):
    statistics = EpisodeStatistics(3)
    running = [[] for _ in range(3)]
    episodes = 0
    for step in steps:
        rewards, bonuses, ended = (np.array(column) for column in zip(*step, strict=True))
        metrics = statistics.add(rewards, bonuses, ended.astype(bool))
        finished = []
        for i, (reward, bonus, end) in enumerate(step):
            running[i].append((reward, bonus))
            if end:
                finished.append(running[i])
                running[i] = []
        episodes += len(finished)
        if not finished:
            assert metrics == {}
            continue
        assert metrics["train/episodes"] == episodes
        assert metrics["train/return"] == pytest.approx(np.mean([sum(r for r, _ in e) for e in finished]), abs=1e-9)
        assert metrics["train/length"] == np.mean([len(e) for e in finished])
        assert metrics["train/bonus"] == pytest.approx(np.mean([np.mean([b for _, b in e]) for e in finished]))


def test_what_is_not_a_number_ends_the_run():
    assert finite(3, {"a": np.float32(0.5), "n": 2}) == {"a": 0.5, "n": 2}
    assert type(finite(3, {"a": np.float32(0.5)})["a"]) is float
    for value in (float("nan"), np.inf, np.float32("nan")):
        with pytest.raises(UsageError, match=r"bonus/loss is (nan|inf) at step 1,200: .* a smaller bonus\.lr may help"):
            finite(1200, {"bonus/loss": value})


def test_means_start_anew_when_taken():
    means = Means()
    for value in (1.0, 2.0, 6.0):
        means.add({"a": value})
    means.add({"b": 5.0})
    assert means.take() == {"a": 3.0, "b": 5.0}
    assert means.take() == {}


def test_numbers_of_the_cpu_are_plain_at_once():
    assert type(finite(1, {"a": torch.tensor(0.5)})["a"]) is float


def test_what_is_on_a_device_is_looked_at_when_it_is_taken(monkeypatch):
    pretend_gpu(monkeypatch)
    means = Means()
    for value in (1.0, 2.0, 6.0):
        (waiting,) = finite(1, {"a": torch.tensor(value)}).values()
        assert isinstance(waiting, torch.Tensor)
        means.add({"a": waiting})
    taken = means.take()
    assert taken == {"a": 3.0}
    assert type(taken["a"]) is float
    means.add(finite(1, {"bonus/loss": torch.tensor(float("nan"))}))
    with pytest.raises(UsageError, match="bonus/loss is nan at step 7"):
        finite(7, means.take())


def test_an_episode_can_be_dropped():
    statistics = EpisodeStatistics(2)
    statistics.add(np.array([5.0, 1.0]), np.array([5.0, 1.0]), np.array([False, False]))
    statistics.drop(np.array([True, False]))
    ended = statistics.add(np.array([2.0, 2.0]), np.array([2.0, 2.0]), np.array([True, False]))
    assert ended == {"train/episodes": 1, "train/return": 2.0, "train/length": 1.0, "train/bonus": 2.0}
    ended = statistics.add(np.array([0.0, 2.0]), np.array([0.0, 2.0]), np.array([False, True]))
    assert (ended["train/return"], ended["train/length"]) == (5.0, 3.0)


def test_looking_at_means_leaves_them():
    means = Means()
    means.add({"a": 1.0})
    assert means.look() == means.look() == means.take() == {"a": 1.0}
