"""All bonuses side by side: every method is in the figure and in the table, at every level of noise."""

import json

import numpy as np
import pytest
from folders import make_run

from cfn.analysis.experiments import members
from cfn.analysis.figures.family import family_figure, family_table, first_goal, goals
from cfn.analysis.figures.panels import Style
from cfn.analysis.figures.paper import FIGURES, draw_experiment
from cfn.config import CONF
from cfn.runs.record import Record, load_runs

MEAN = Style("mean")


def run(root, bonus, noise, seed, returns):
    """A run whose training episodes, one per 100 steps, had these returns."""
    overrides = ["experiment=family", "preset=mini", f"env.action_noise={noise}"]
    config = {"env.action_noise": noise, "eval.every": 100}
    folder = make_run(root, bonus, seed, "gridworld_small", config=config, overrides=overrides, tables=0)
    rows = [
        {
            "step": 100 * (i + 1),
            "train/return": r,
            "train/episodes": i + 1,
            "eval/return": r,
            "explore/states": 7 * i + 9,
        }
        for i, r in enumerate(returns)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def found(tmp_path):
    for seed, returns in enumerate([(0, 1, 1), (0, 0, 1), (0, 0, 0)]):
        run(tmp_path, "cfn", 0, seed, returns)
        run(tmp_path, "cfn", 0.25, seed, (0, 0, 0))
        run(tmp_path, "e3b", 0, seed, returns[::-1])
    return members(load_runs([tmp_path])[0], "family", CONF)


def test_what_is_measured(tmp_path):
    early, never = (Record.read(run(tmp_path, "cfn", 0, 0, returns)) for returns in [(0, 1, 1), (0, 0, 0)])
    assert (goals(early), first_goal(early)) == (2, 200)
    assert (goals(never), first_goal(never)) == (0, 300), "without a goal, all steps of the run"


def test_every_method_has_a_row_in_every_panel_and_a_point_per_level_of_noise(found):
    figure = family_figure(found, MEAN)
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "goals found in training", "distinct states seen", "steps until the first goal",
    ]  # fmt: skip
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert names == ["CFN", "E3B"]
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert sorted(points) == [(0, 0.125), (1, -0.125), (1, 0.875)]
    assert "Mean and standard error over 3 seeds" in figure.texts[0].get_text()


def test_the_table_has_the_same_numbers(found):
    lines = family_table(found, MEAN).splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert [row[:3] for row in rows[2:]] == [
        ["CFN", "action noise 0", "2 of 3"],
        ["CFN", "action noise 0.25", "0 of 3"],
        ["E3B", "action noise 0", "2 of 3"],
    ]
    steps = np.mean([200, 300, 300])
    assert rows[2][5].startswith(f"{steps:.0f} ")
    assert "a run without a goal counts with all of its steps" in lines[-1]


def test_the_experiment_draws_it_and_says_what_is_missing(found, tmp_path):
    folders = [run.folder for group in found.groups for run in group.runs]
    drawn = draw_experiment("family", folders, tmp_path / "family.png", CONF)
    assert drawn.path.is_file()
    assert (tmp_path / "family.md").read_text() == drawn.table
    assert any("no run of: " in problem for problem in drawn.problems)
    assert FIGURES["family"].style.stat == "iqm"
