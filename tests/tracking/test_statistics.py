import numpy as np
import pytest
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
