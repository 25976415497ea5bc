"""The pictures hold what the files say: their axes are asked for the data that they drew."""

import json

import matplotlib.image
import numpy as np
import pytest

from cfn.analysis.figures.single_run import count_error_figure, draw_run, learning_curve_figure, scatter_figure
from cfn.runs.reading import CountTable, Series


@pytest.fixture
def table():
    counts = np.array([1.0, 4.0, 9.0])
    return CountTable(500, np.array([[0, 0], [2, 1], [1, 3]]), counts, counts**-0.5, np.array([0.9, 0.6, 0.2]))


def series(*values):
    return Series(np.arange(1.0, len(values) + 1) * 100, np.array(values, float))


def test_the_scatter_has_a_point_per_state_and_the_dashed_identity(table):
    axes = scatter_figure(table, "a title", estimates_counts=True).axes[0]
    points, identity = axes.lines
    assert points.get_xdata().tolist() == table.true_bonus.tolist()
    assert points.get_ydata().tolist() == table.predicted_bonus.tolist()
    assert (identity.get_linestyle(), list(identity.get_xdata()), list(identity.get_ydata())) == ("--", [0, 1], [0, 1])
    assert "3 states after 500 steps" in axes.get_title()
    assert "mean squared error" in axes.get_title()


def test_a_bonus_on_a_scale_of_its_own_is_not_judged_as_a_count(table):
    small = table._replace(predicted_bonus=table.predicted_bonus / 100)
    axes = scatter_figure(small, "", estimates_counts=False).axes[0]
    assert len(axes.lines) == 1, "no dashed line"
    assert axes.get_ylim()[1] < 0.02
    assert "error" not in axes.get_title()


def test_the_scatter_shows_predictions_beyond_one(table):
    wild = table._replace(predicted_bonus=np.array([-0.5, 0.0, 7.0]))
    low, high = scatter_figure(wild, "", estimates_counts=True).axes[0].get_ylim()
    assert low < -0.5
    assert high > 7


def test_the_count_error_stands_above_its_floor(table):
    metrics = {"bonus/mse": series(0.1, 0.01, 0.004), "bonus/floor_mse": series(0.002, 0.003, 0.002)}
    mse, floor = count_error_figure(metrics, "a title").axes[0].lines
    assert mse.get_ydata().tolist() == [0.1, 0.01, 0.004]
    assert floor.get_ydata().tolist() == [0.002, 0.003, 0.002]
    assert floor.get_linestyle() == "--"
    assert "(floor 0.002)" in scatter_figure(table, "", True, metrics["bonus/floor_mse"]).axes[0].get_title()


def test_the_learning_curve_smooths_training_and_shows_evaluation():
    metrics = {"train/return": series(*range(60)), "eval/return": series(1, 2), "explore/states": series(5, 6, 9)}
    figure = learning_curve_figure(metrics, "a title")
    episodes, smooth, evaluation = figure.axes[0].lines
    assert episodes.get_ydata().tolist() == list(range(60))
    assert smooth.get_ydata()[:4].tolist() == [0.0, 0.5, 1.0, 2.0], "means of three, a twentieth of all"
    assert evaluation.get_ydata().tolist() == [1, 2]
    assert figure.axes[1].lines[0].get_ydata().tolist() == [5, 6, 9]


def test_a_curve_of_nothing_is_not_blown_up():
    figure = learning_curve_figure({"eval/return": series(0, 0, 0)}, "a title")
    assert figure.axes[0].get_ylim() == (-0.1, 1.1)
    assert len(figure.axes) == 1


def test_a_run_is_drawn_from_its_files_alone(tmp_path):
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "config.yaml").write_text("env:\n  size: 4\n")
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 10, "eval/return": 1.0, "explore/states": 2}) + "\n")
    (tmp_path / "counts").mkdir()
    rows = "state,count,true_bonus,predicted_bonus\n0 0,1,1,1\n1 1,4,0.5,0.4\n"
    (tmp_path / "counts" / "step_000000010.csv").write_text(rows)
    pictures = draw_run(tmp_path, "a title")
    assert set(pictures) == {"learning_curve", "scatter", "maps"}
    for path in pictures.values():
        image = matplotlib.image.imread(path)
        assert image.shape[0] > 300
        assert image.std() > 0.05, "not an empty page"


def test_states_that_are_no_positions_have_no_maps(tmp_path):
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "config.yaml").write_text("env: {}\n")
    (tmp_path / "metrics.jsonl").write_text("")
    (tmp_path / "counts").mkdir()
    (tmp_path / "counts" / "step_000000010.csv").write_text("state,count,true_bonus,predicted_bonus\n0 0 1,1,1,1\n")
    assert set(draw_run(tmp_path, "a title")) == {"learning_curve", "scatter"}


def test_rooms_have_a_panel_beside_the_learning_curve():
    metrics = {"eval/return": series(0, 1), "explore/states": series(3, 9), "explore/rooms": series(1, 2)}
    figure = learning_curve_figure(metrics, "")
    assert [axes.get_ylabel() for axes in figure.axes][1:] == ["distinct states seen", "rooms visited"]
    assert figure.axes[2].lines[0].get_ydata().tolist() == [1, 2]
