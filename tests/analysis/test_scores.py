"""Scores are comparable, and what cannot be compared is named."""

import json

import pytest
from folders import make_run

from cfn.analysis.grouping import group
from cfn.analysis.scores import goals_so_far, scores, series_of, smooth, unequal
from cfn.runs.record import STATES, load_runs


def groups(tmp_path):
    return group(load_runs([tmp_path])[0])[0]


def test_averages_end_at_the_last_step_that_all_runs_have_reached(tmp_path):
    make_run(tmp_path, returns=(0, 1, 9), mse=(1, 1, 1))
    make_run(tmp_path, "rnd", returns=(0, 1), mse=(1, 1))
    found = groups(tmp_path)
    score = scores(found)
    assert [score.averages(one.runs) for one in found] == [[0.5], [0.5]]
    assert "the first 200 steps" in score.averaged
    assert scores(found[:1]).averaged == "return, averaged over the run"


def test_averages_begin_at_the_first_step_that_all_runs_have(tmp_path):
    """Two runs with the same curve have the same score, however often they are evaluated."""
    make_run(tmp_path, returns=(1, 2, 3, 4, 5, 6), mse=(1,) * 6, every=100)
    make_run(tmp_path, "rnd", returns=(3, 6), mse=(1, 1), every=300)
    found = groups(tmp_path)
    score = scores(found)
    assert [score.averages(one.runs) for one in found] == [[4.5], [4.5]]


def test_without_evaluations_the_score_is_the_smoothed_training_return(tmp_path):
    folder = make_run(tmp_path, tables=0)
    (folder / "metrics.jsonl").write_text('{"step": 10, "train/return": 1}\n{"step": 20, "train/return": 2}\n')
    (one,) = groups(tmp_path)
    (series,) = scores([one]).of(one.runs)
    assert series.values.tolist() == [1, 1.5]
    assert series_of(one.runs, STATES) == []
    assert goals_so_far(one.runs) == []
    assert unequal([one]) == ["gridworld, CFN: no evaluations yet; training returns are shown instead"]


def test_goals_are_counted_up_to_each_evaluation(tmp_path):
    make_run(tmp_path, seed=1)
    (one,) = groups(tmp_path)
    assert goals_so_far(one.runs)[0].values == pytest.approx([1, 2])


def test_runs_of_different_length_are_named(tmp_path):
    make_run(tmp_path, seed=0)
    make_run(tmp_path, seed=1, returns=(0,), mse=(1,))
    make_run(tmp_path, "rnd", returns=(0,), mse=(1,))
    make_run(tmp_path, env="taxi5")
    assert unequal(groups(tmp_path)) == [
        "gridworld, CFN: seeds end between steps 100 and 200; lines are dotted where some seeds have no data",
        "gridworld: settings end at different steps (RND at step 100, CFN at 200); "
        "averages cover the steps that all of them have",
    ]
    assert unequal(groups(tmp_path / "taxi5")) == []


def iterated(root, returns, bonus="cfn", seed=0, evaluations=True, every=100):
    """A run with two training episodes of equal return in each iteration, and evaluations that return 9."""
    folder = make_run(root, bonus, seed, tables=0, config={"eval.every": every})
    rows = []
    for i, value in enumerate(returns):
        rows.append({"step": 100 * i + 50, "train/return": value - 1, "train/episodes": 2 * i + 1})
        rows.append({"step": 100 * i + 100, "train/return": value + 1, "train/episodes": 2 * i + 2})
        rows[-1] |= {"eval/return": 9} if evaluations else {}
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_training_returns_are_shown_on_request(tmp_path):
    iterated(tmp_path, (2, 4, 6))
    found = groups(tmp_path)
    score = scores(found, "train")
    (series,) = score.of(found[0].runs)
    assert (series.steps.tolist(), series.values.tolist()) == ([100, 200, 300], [2, 4, 6])
    assert (score.returns, score.name) == ("train", "training")
    assert score.description == "returns of training episodes, mean of each iteration of 100 steps"
    assert score.averages(found[0].runs) == [4], "each iteration counts the same, not the area of trapezoids"
    assert score.averaged == "return, averaged over 3 iterations"
    evaluated = scores(found)
    assert (evaluated.returns, evaluated.of(found[0].runs)[0].values.tolist()) == ("eval", [9, 9, 9])
    assert evaluated.description == "returns of evaluations"


def test_training_is_averaged_over_the_iterations_that_all_runs_have(tmp_path):
    iterated(tmp_path, (2, 4, 60))
    iterated(tmp_path, (1, 1), "rnd")
    found = groups(tmp_path)
    score = scores(found, "train")
    assert [score.averages(one.runs) for one in found] == [[3], [1]]
    assert "the first 200 steps" in score.averaged


def test_smoothing_is_over_the_last_iterations(tmp_path):
    iterated(tmp_path, (2, 4, 6, 20))
    (one,) = groups(tmp_path)
    training, evaluations = scores([one], "train", 3), scores([one], "eval", 3)
    assert training.of(one.runs)[0].values == pytest.approx([2, 3, 4, 10]), "(4 + 6 + 20) / 3"
    assert training.description.endswith("of 100 steps, averaged over the last 3 iterations")
    assert evaluations.description == "returns of evaluations, averaged over the last 3 evaluations"
    series = one.runs[0].metrics["eval/return"]
    assert smooth(series, 1) is series


def test_runs_without_iterations_are_smoothed_over_episodes_and_so_are_the_others(tmp_path):
    iterated(tmp_path, (2, 4))
    iterated(tmp_path, (2, 4), "rnd", every=None)
    found = groups(tmp_path)
    score = scores(found, "train")
    assert score.description == "returns of training episodes, mean of 20 episodes"
    assert score.of(found[0].runs)[0].values == pytest.approx([1, 2, 7 / 3, 3])


def test_iterations_of_different_lengths_have_no_length_in_the_description(tmp_path):
    iterated(tmp_path, (2, 4))
    iterated(tmp_path, (2, 4), "rnd", every=50)
    score = scores(groups(tmp_path), "train")
    assert score.description == "returns of training episodes, mean of each iteration"
    assert score.averaged == "return, averaged over the run"


def test_without_training_returns_evaluations_are_shown_and_said(tmp_path):
    folder = make_run(tmp_path, tables=0, config={"eval.every": 100})
    (folder / "metrics.jsonl").write_text('{"step": 100, "eval/return": 1}\n')
    found = groups(tmp_path)
    assert scores(found, "train").returns == "eval"
    assert unequal(found, "train") == ["gridworld, CFN: no training returns yet; evaluation returns are shown instead"]
    assert unequal(found) == []


def test_seeds_without_the_returns_that_are_shown_are_named(tmp_path):
    iterated(tmp_path, (2, 4))
    folder = make_run(tmp_path, seed=1, tables=0, config={"eval.every": 100})
    (folder / "metrics.jsonl").write_text('{"step": 200, "eval/return": 1}\n')
    assert unequal(groups(tmp_path), "train") == ["gridworld, CFN: 1 of 2 seeds have no training return yet"]
    assert unequal(groups(tmp_path)) == []
