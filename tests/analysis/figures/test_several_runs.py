"""The pictures that `cfn plot` draws of any runs."""

import matplotlib.image
import numpy as np
import pytest
from folders import HEADER, make_run

from cfn.analysis.figures.common import save
from cfn.analysis.figures.counting import newest_tables
from cfn.analysis.figures.panels import Style
from cfn.analysis.figures.several_runs import (
    compare,
    compare_by_key,
    compare_count_errors,
    compare_learning_curves,
    compare_scatters,
    too_many,
)
from cfn.analysis.grouping import group
from cfn.runs.record import load_runs


def groups(tmp_path):
    return group(load_runs([tmp_path])[0])[0]


def test_each_task_has_its_own_pictures(tmp_path):
    make_run(tmp_path, env="taxi5", tables=0)
    make_run(tmp_path, "none", env="fetch_push", config={"env.mode": "hard"})
    names = [name for name, _ in compare(groups(tmp_path), Style())]
    assert names == ["fetch_push_hard-curve", "fetch_push_hard-maps", "taxi5-curve", "taxi5-count_error"]


def test_tasks_whose_files_would_have_the_same_name_have_a_file_each(tmp_path):
    make_run(tmp_path, env="fetch_push", config={"env.mode": "hard"}, tables=0, mse=(0, 0))
    make_run(tmp_path, env="fetch_push_hard", tables=0, mse=(0, 0))
    names = [name for name, _ in compare(groups(tmp_path), Style())]
    assert names == ["fetch_push_hard-curve", "fetch_push_hard-curve-2"]


def test_maps_far_apart_are_drawn_each_on_its_own(tmp_path):
    for scale, place in ((1, 0), (2, 10**9)):
        folder = make_run(tmp_path, config={"bonus.scale": scale})
        rows = "".join(f"{place + i} {i},1,1,1\n" for i in range(3))
        (folder / "counts" / "step_000000100.csv").write_text(f"{HEADER}\n{rows}")
    pictures = dict(compare(groups(tmp_path), Style()))
    maps = [axes.images[0].get_array() for axes in pictures["gridworld-maps"].axes if axes.images]
    assert [one.shape for one in maps] == [(3, 3)] * 4


def test_many_settings_go_on_in_the_next_picture(tmp_path):
    for scale in range(29):
        make_run(tmp_path, config={"bonus.scale": scale}, tables=0, mse=(0, 0))
    found = groups(tmp_path)
    pictures = dict(compare(found, Style()))
    assert list(pictures) == ["gridworld-curve", "gridworld-curve-2", "gridworld-by_bonus.scale"]
    assert [len(pictures[name].axes[0].lines) for name in ("gridworld-curve", "gridworld-curve-2")] == [25, 4]
    first = pictures["gridworld-curve-2"].axes[0].lines[0]
    assert first.get_label() == "CFN, bonus.scale=25 (1 seed)", "in the order of their values"
    assert too_many(found)[0].startswith("gridworld has 29 settings: scatters show at most 8")
    assert too_many(found[:5]) == []


def test_curves_show_score_and_exploration(tmp_path):
    for seed in (0, 1):
        make_run(tmp_path, seed=seed, returns=(seed, 1))
    score, states = compare_learning_curves(groups(tmp_path), Style("mean")).axes
    assert score.get_title() == "gridworld: evaluations"
    assert score.lines[0].get_ydata() == pytest.approx([0.5, 1])
    assert (states.get_ylabel(), states.lines[0].get_ydata().tolist()) == ("distinct states seen", [10, 20])


def test_a_swept_key_has_bars_for_each_method(tmp_path):
    for bonus, factor in (("cfn", 1), ("rnd", 0.5)):
        for scale in (0.1, 0.01):
            make_run(tmp_path, bonus, returns=(scale * factor,) * 2, config={"bonus.scale": scale, "bonus.b": bonus})
    axes = compare_by_key("bonus.scale", groups(tmp_path), Style()).axes[0]
    bars = [container for container in axes.containers if hasattr(container, "patches")]
    assert {one.get_label(): [bar.get_height() for bar in one] for one in bars} == {
        "CFN": pytest.approx([0.01, 0.1]),
        "RND": pytest.approx([0.005, 0.05]),
    }
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.01", "0.1"]


def test_bars_compare_over_the_steps_that_all_have(tmp_path):
    rising = (0, 0.2, 0.4, 0.6, 0.8)
    for noise, steps in ((0.1, 5), (0.2, 3)):
        make_run(tmp_path, returns=rising[:steps], mse=(1,) * steps, config={"env.noise": noise})
    axes = compare_by_key("env.noise", groups(tmp_path), Style()).axes[0]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([0.2, 0.2])
    assert "the first 300 steps" in axes.get_ylabel()


def test_keys_of_any_kind_are_names_of_files(tmp_path):
    key = "a/b $x_^{$ " + "long" * 40
    for value in (1, 2):
        make_run(tmp_path, config={f"env.{key}": value})
    for name, figure in compare(groups(tmp_path), Style()):
        assert (tmp_path / f"{name}.png").parent == tmp_path
        save(figure, tmp_path / f"{name}.png")
    assert len(list(tmp_path.glob("gridworld-by_env*"))) == 1


def test_a_legend_with_long_names_stays_within_the_picture(tmp_path):
    for value in (1, 2):
        keys = {f"env.a_rather_long_name_of_a_key_{i}": value * i for i in range(6)}
        make_run(tmp_path, config=keys, overrides=[f"{key}={v}" for key, v in keys.items()])
    figure = compare_count_errors(groups(tmp_path), Style())
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_each_floor_has_its_settings_colour(tmp_path):
    for d in (10, 20):
        make_run(tmp_path, config={"bonus.d": d})
    one, other, *floors, _ = compare_count_errors(groups(tmp_path), Style()).axes[0].lines
    assert [line.get_color() for line in floors] == [one.get_color(), other.get_color()]


def test_maps_share_what_they_can(tmp_path):
    for bonus in ("cfn", "none", "rnd"):
        make_run(tmp_path, bonus, config={"env.size": 6})
    found = groups(tmp_path)
    assert len(compare_scatters([(found[0], newest_tables(found[0].runs))]).axes) == 1
    figure = dict(compare(found, Style()))["gridworld-maps"]
    images = [axes.images[0] for axes in figure.axes[:6] if axes.images]
    assert [image.get_array().shape for image in images] == [(6, 6)] * 5, "no bonus, no map of it"
    assert len(figure.axes) == 6 + 3, "a bar for the visits, for the bonus that counts, and for the other's"
    titles = [axes.get_title().splitlines()[0] for axes in figure.axes if axes.get_title()]
    assert titles == ["CFN, seed 0", "no bonus, seed 0", "RND, seed 0"]


def test_the_first_seed_that_was_counted_is_mapped(tmp_path):
    make_run(tmp_path, tables=0)
    make_run(tmp_path, seed=1)
    figure = dict(compare(groups(tmp_path), Style()))["gridworld-maps"]
    assert figure.axes[0].get_title() == "CFN, seed 1\nafter 100 steps"


def test_what_is_no_number_has_no_bar(tmp_path):
    for bonus, clips in (("cfn", (1, 2)), ("rnd", (1, None))):
        for clip in clips:
            make_run(tmp_path, bonus, config={"reward_clip": clip})
    axes = dict(compare(groups(tmp_path), Style()))["gridworld-by_reward_clip"].axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2"]


def test_rooms_have_maps_too(tmp_path):
    folder = make_run(tmp_path, env="montezuma", tables=0)
    (folder / "counts" / "step_000000100.csv").write_text(
        "state,count,true_bonus,predicted_bonus\n77 235 1,4,0.5,0.4\n"
    )
    (folder / "rooms").mkdir()
    matplotlib.image.imsave(folder / "rooms" / "1.png", np.zeros((84, 84), np.uint8), cmap="gray")
    assert "montezuma-rooms-1" in [name for name, _ in compare(groups(tmp_path), Style())]


def test_the_style_chooses_returns_and_errors_and_the_caption_names_them(tmp_path):
    """Training returns are 0 and 1 in the first two iterations; the root of the mean of squares is 0.3."""
    make_run(tmp_path, returns=(5, 5), mse=(0.09, 0.09), config={"eval.every": 100})
    style = Style("mean", score="train", error="rmse")
    pictures = dict(compare(groups(tmp_path), style))
    curve, error = pictures["gridworld-curve"], pictures["gridworld-count_error"]
    assert curve.axes[0].get_title() == "gridworld: training"
    assert curve.axes[0].lines[0].get_ydata() == pytest.approx([0, 1])
    assert curve.texts[0].get_text().endswith("Returns of training episodes, mean of each iteration of 100 steps.")
    assert error.axes[0].lines[0].get_ydata() == pytest.approx([0.3, 0.3])
    assert error.axes[0].get_ylabel() == "root mean squared error"
    assert error.texts[0].get_text() == "1 seed each. Root mean squared error over visited states."
    assert pictures["gridworld-scatter"].texts[-1].get_text() == "N(s): actions taken in s."


def test_bars_of_training_are_means_over_iterations(tmp_path):
    for noise in (0.1, 0.2):
        make_run(tmp_path, returns=(5, 5, 5), mse=(1, 1, 1), config={"env.noise": noise, "eval.every": 100})
    axes = compare_by_key("env.noise", groups(tmp_path), Style(score="train")).axes[0]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([2 / 3, 2 / 3]), "0, 1 and 1"
    assert axes.get_ylabel() == "return, averaged over 3 iterations"


def test_states_that_nobody_acted_in_are_on_no_map(tmp_path):
    folder = make_run(tmp_path, config={"env.size": 3})
    rows = "0 0,2,0.707,0.5,0\n1 0,1,1,0.5,2\n2 2,0,,0.9,1\n"
    (folder / "counts" / "step_000000100.csv").write_text(f"{HEADER},arrivals\n{rows}")
    pictures = dict(compare(groups(tmp_path), Style()))
    visits = pictures["gridworld-maps"].axes[0].images[0].get_array()
    assert visits.mask[2, 2]
    assert visits[0, 0] == 2
    points = pictures["gridworld-scatter"].axes[0].lines[0]
    assert points.get_xdata().tolist() == [0.707, 1]
