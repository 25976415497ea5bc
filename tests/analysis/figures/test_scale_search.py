"""The search for scales: every setting is in the figure and in the table, and the best ones are marked."""

import json

import pytest
from folders import make_run

from cfn.analysis.experiments import members
from cfn.analysis.figures.panels import Style
from cfn.analysis.figures.paper import FIGURES, draw_experiment
from cfn.analysis.figures.scale_search import search_figure, search_table
from cfn.config import CONF
from cfn.runs.record import load_runs

MEAN = Style("mean")


def search(root, bonus, returns, seed=0, env="gridworld", agent="rainbow", **keys):
    """A run of the search with these keys, and this return in all evaluations; in training it is 10 more."""
    config = {key.replace("_", ".", 1): value for key, value in keys.items()}
    overrides = ["experiment=scale_search", "preset=mini", *(f"{key}={value}" for key, value in config.items())]
    config |= {"eval.every": 100, "suite.search": {"cfn": {"scale": [0.001, 0.01], "normalize": [True, False]}}}
    folder = make_run(root, bonus, seed, env, agent, config=config, overrides=overrides, tables=0)
    rows = [{"step": s, "eval/return": returns, "train/return": returns + 10, "train/episodes": s} for s in (100, 200)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def found(root):
    return members(load_runs([root])[0], "scale_search", CONF)


@pytest.fixture
def searched(tmp_path):
    """CFN on two scales, with and without normalisation, two seeds; RND on one scale; no bonus with two rates."""
    for seed in (0, 1):
        for scale, normalize, score in ((0.01, True, 3), (0.001, True, 1), (0.01, False, 2), (0.001, False, 2)):
            search(tmp_path, "cfn", score + seed, seed, bonus_scale=scale, bonus_normalize=normalize)
    search(tmp_path, "rnd", 2, bonus_scale=5e-5)
    for lr in (0.1, 0.2):
        search(tmp_path, "none", 10 * lr, agent_lr=lr)
    return tmp_path


def test_each_combination_of_the_other_values_has_a_line_over_the_scales(searched):
    figure = search_figure(found(searched), MEAN)
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}
    points = {label: (list(line.get_xdata()), list(line.get_ydata())) for label, line in lines.items()}
    assert points["CFN, bonus.normalize=true"] == ([0.001, 0.01], [1.5, 3.5])
    assert points["CFN, bonus.normalize=false"] == ([0.001, 0.01], [2.5, 2.5])
    assert points["RND"] == ([5e-5], [2])
    assert points["no bonus, agent.lr=0.1"][1] == [1, 1], "without a scale, a horizontal line"
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "bonus.scale")
    assert figure.texts[0].get_text() == "Mean and standard error over 1 to 2 seeds. Returns of evaluations."


def test_intervals_are_drawn_where_they_are_known(searched):
    """Two seeds with 1 and 2, so 1.5 with a standard error of 1/2; one seed has no interval."""
    (axes,) = search_figure(found(searched), MEAN).axes
    segments = [segment for bars in axes.collections for segment in bars.get_segments() if len(segment)]
    assert {(float(x), float(low), float(high)) for (x, low), (_, high) in segments} == {
        (0.001, 1, 2),
        (0.01, 3, 4),
        (0.001, 2, 3),
        (0.01, 2, 3),
    }


def test_the_best_setting_of_each_bonus_is_marked(searched):
    (axes,) = search_figure(found(searched), MEAN).axes
    stars = [tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() == "*" and len(line.get_xdata())]
    assert set(stars) == {(0.01, 3.5), (5e-5, 2), (1, 2)}, "of CFN, of RND, and of no bonus (at the right end)"


def test_the_table_has_every_setting(searched):
    lines = search_table(found(searched), MEAN).splitlines()
    assert lines[0] == "| environment | method | bonus.scale | score | interval | seeds | best |"
    assert lines[2:9] == [
        "| gridworld | CFN, bonus.normalize=false | 0.001 | 2.5 | 2 to 3 | 2 |  |",
        "| gridworld | CFN, bonus.normalize=false | 0.01 | 2.5 | 2 to 3 | 2 |  |",
        "| gridworld | CFN, bonus.normalize=true | 0.001 | 1.5 | 1 to 2 | 2 |  |",
        "| gridworld | CFN, bonus.normalize=true | 0.01 | 3.5 | 3 to 4 | 2 | best |",
        "| gridworld | no bonus, agent.lr=0.1 |  | 1 |  | 1 |  |",
        "| gridworld | no bonus, agent.lr=0.2 |  | 2 |  | 1 | best |",
        "| gridworld | RND | 5e-05 | 2 |  | 1 | best |",
    ]
    assert (
        "Score: return, averaged over the run (returns of evaluations); mean and standard error over 1 to 2"
        in lines[10]
    )


def test_the_score_may_be_that_of_training(searched):
    text = search_table(found(searched), MEAN._replace(score="train"))
    assert "| gridworld | CFN, bonus.normalize=true | 0.01 | 13.5 | 13 to 14 | 2 | best |" in text
    assert "averaged over 2 iterations (returns of training episodes, mean of each iteration of 100 steps)" in text


def test_where_all_are_equal_none_is_best(tmp_path):
    for scale in (0.01, 0.001):
        search(tmp_path, "cfn", 0, bonus_scale=scale)
    assert "| best |" not in search_table(found(tmp_path), MEAN).split("\n", 1)[1]
    figure = search_figure(found(tmp_path), MEAN)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["CFN"]


def test_equal_ones_are_best_together(tmp_path):
    for scale, score in ((0.1, 5), (0.01, 5), (0.001, 1)):
        search(tmp_path, "cfn", score, bonus_scale=scale)
    assert search_table(found(tmp_path), MEAN).count("| best |\n") == 3, "the header and two rows"


def test_tasks_have_panels_and_winners_of_their_own(tmp_path):
    for i, env in enumerate(("taxi5", "gridworld", "hammer", "door")):
        for scale, score in ((0.1, i), (0.01, 1.5)):
            search(tmp_path, "cfn", score, env=env, bonus_scale=scale)
    figure = search_figure(found(tmp_path), MEAN)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert sorted(axes.get_title() for axes in shown) == ["Door", "Hammer", "Visual Gridworld", "Visual Taxi, 5x5"]
    best = [line.split(" | ") for line in search_table(found(tmp_path), MEAN).splitlines() if line.endswith("best |")]
    winners = {cells[0].removeprefix("| "): cells[2] for cells in best[1:]}
    assert winners == {"taxi5": "0.01", "gridworld": "0.01", "hammer": "0.1", "door": "0.1"}


@pytest.mark.parametrize("scale", [0, -1, None, "a", True])
def test_what_has_no_place_on_a_logarithmic_axis_is_drawn_too(tmp_path, scale):
    search(tmp_path, "cfn", 1, bonus_scale=scale)
    figure = search_figure(found(tmp_path), MEAN._replace(seeds=True))
    figure.draw_without_rendering()
    assert figure.axes[0].lines[0].get_ydata() == [1, 1]
    assert figure.axes[0].get_xscale() == "linear"


def test_a_run_without_a_score_is_listed(tmp_path):
    search(tmp_path, "cfn", 1, bonus_scale=0.1)
    begun = search(tmp_path, "cfn", 1, bonus_scale=0.2)
    (begun / "metrics.jsonl").write_text('{"step": 5, "bonus/mse": 1}\n')
    text = search_table(found(tmp_path), MEAN)
    assert "| gridworld | CFN | 0.2 |  |  | 0 of 1 |  |" in text
    assert "gridworld, CFN, bonus.scale=0.2: no evaluations yet; there is no score." in text
    search_figure(found(tmp_path), MEAN).draw_without_rendering()


def test_the_sweep_writes_figure_and_table_side_by_side(searched, tmp_path):
    drawn = draw_experiment("scale_search", [searched], tmp_path / "sweep.png", CONF)
    assert drawn.path == tmp_path / "sweep.png"
    assert drawn.path.stat().st_size > 10_000
    assert drawn.problems == [], "no run is missing: a search has no plan"
    assert (tmp_path / "sweep.md").read_text() == drawn.table == search_table(found(searched), MEAN)
    assert FIGURES["scale_search"].style.stat == "mean"
