"""The figures of experiments hold what their runs say, in the paper's layout."""

import json

import matplotlib.image
import numpy as np
import pytest
import yaml
from folders import HEADER, make_run

from cfn.analysis.experiments import SEARCHES, Members, members, plan
from cfn.analysis.figures.common import save
from cfn.analysis.figures.panels import Style
from cfn.analysis.figures.paper import FIGURES, draw_experiment
from cfn.analysis.grouping import group
from cfn.config import CONF
from cfn.errors import UsageError
from cfn.runs.record import load_runs

MEAN = Style("mean")


def draw(name, tmp_path, style=MEAN):
    """The figure of all runs that there are, whatever the experiment's plan is."""
    groups, _ = group(load_runs([tmp_path])[0])
    found = Members(groups, list(dict.fromkeys(one.task for one in groups)), [])
    return FIGURES[name].draw(found, style)


def planned(name, tmp_path, cell, **more):
    """A run of one of an experiment's cells, at the paper's size."""
    keys = {key: yaml.safe_load(value) for key, value in cell.items() if "." in key}
    names = {key: cell[key] for key in ("env", "agent", "bonus")}
    return make_run(tmp_path, **names, config=keys, overrides=[f"experiment={name}"], **more)


def caption(figure):
    (text,) = figure.texts
    return text.get_text().replace("\n", " ")


def published(name, tmp_path):
    """The figure in its published style."""
    return draw(name, tmp_path, FIGURES[name].style)


def write(folder, rows):
    """Replace the metrics of a run."""
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def bar_heights(axes):
    return [[bar.get_height() for bar in bars] for bars in axes.containers if hasattr(bars, "patches")]


def test_scatters_have_a_panel_for_each_method_and_environment(tmp_path):
    for env in ("taxi10", "taxi5"):
        for bonus in ("cfn", "rnd"):
            for seed in (0, 1):
                make_run(tmp_path, bonus, seed, env)
    figure = draw("taxi_counts", tmp_path)
    assert [axes.get_title() for axes in figure.axes] == [
        f"{method}, Visual Taxi, {size}\nafter 100 steps" for size in ("10x10", "5x5") for method in ("CFN", "RND")
    ]
    dashed = [sum(line.get_linestyle() == "--" for line in axes.lines) for axes in figure.axes]
    assert dashed == [1, 0, 1, 0], "RND does not mean to count"
    assert [len(axes.lines) - d for axes, d in zip(figure.axes, dashed, strict=True)] == [2, 2, 2, 2], "every seed"


def test_the_ablation_shows_mean_error_and_floor(tmp_path):
    for prior, prioritize in [(True, True), (True, False), (False, True), (False, False)]:
        for seed in (0, 1):
            make_run(tmp_path, seed=seed, config={"bonus.prior": prior, "bonus.prioritize": prioritize})
    figure = draw("gridworld_ablation", tmp_path)
    curves = figure.axes[0].lines
    assert [line.get_label() for line in (*curves[:4], curves[-1])] == [
        "CFN",
        "CFN without priorities",
        "CFN without prior",
        "CFN without prior or priorities",
        "floor: a perfect network, these coins",
    ]
    assert curves[0].get_ydata() == pytest.approx([0.101, 0.011])
    assert curves[-2].get_ydata() == pytest.approx([0.002, 0.002])
    assert figure.axes[0].get_yscale() == "log"
    assert len(figure.axes) == 5


def test_learning_curves_are_statistics_over_seeds(tmp_path):
    scores = {("cfn", 0): (0, 1), ("cfn", 1): (1, 1), ("none", 0): (0, 0), ("none", 1): (0, 0)}
    for (bonus, seed), returns in scores.items():
        make_run(tmp_path, bonus, seed, returns=returns, config={"agent.noisy": bonus == "none"})
    axes = draw("gridworld_curves", tmp_path).axes[0]
    assert [line.get_label() for line in axes.lines] == ["CFN (2 seeds)", "noisy Rainbow (2 seeds)"]
    assert axes.lines[0].get_ydata() == pytest.approx([0.5, 1])
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((0, 1)), "the standard error of 0 and 1 is 1/2"
    assert axes.get_ylim() == (-0.05, 1.05)


def test_seeds_are_shown_on_request_and_the_text_says_what_the_band_is(tmp_path):
    for seed in (0, 1, 2):
        make_run(tmp_path, seed=seed)
    plain, with_seeds = (draw("gridworld_curves", tmp_path, Style("iqm", seeds)) for seeds in (False, True))
    assert [len(figure.axes[0].lines) for figure in (plain, with_seeds)] == [1, 4]
    assert caption(plain).startswith("Mean (too few seeds to trim) and 95% bootstrap interval over 3 seeds. ")
    make_run(tmp_path, seed=3)
    more = draw("gridworld_curves", tmp_path, Style())
    assert caption(more).startswith("Interquartile mean and 95% bootstrap interval over 4 seeds. ")


def test_where_seeds_are_missing_the_line_is_dotted(tmp_path):
    make_run(tmp_path, seed=0, returns=(0, 0, 1), mse=(1, 1, 1))
    make_run(tmp_path, seed=1, returns=(1, 1), mse=(1, 1))
    solid, dotted = draw("gridworld_curves", tmp_path).axes[0].lines
    assert solid.get_ydata() == pytest.approx([0.5, 0.5, np.nan], nan_ok=True)
    assert dotted.get_ydata() == pytest.approx([np.nan, 0.5, 1], nan_ok=True)
    assert (dotted.get_linestyle(), dotted.get_label()[0]) == (":", "_")


def test_a_seed_without_the_metric_is_missing_too(tmp_path):
    make_run(tmp_path, seed=0, returns=(0, 1))
    folder = make_run(tmp_path, seed=1)
    (folder / "metrics.jsonl").write_text('{"step": 100, "train/return": 7}\n')
    solid, dotted = draw("gridworld_curves", tmp_path).axes[0].lines
    assert solid.get_label() == "CFN (1 of 2 seeds)"
    assert np.isnan(solid.get_ydata()).all()
    assert dotted.get_ydata() == pytest.approx([0, 1])


def test_training_is_never_drawn_among_evaluations(tmp_path):
    make_run(tmp_path, returns=(0, 1))
    folder = make_run(tmp_path, "rnd")
    (folder / "metrics.jsonl").write_text('{"step": 100, "train/return": 5}\n')
    axes = draw("gridworld_curves", tmp_path).axes[0]
    assert axes.get_title() == "Visual Gridworld: evaluations"
    assert [line.get_label() for line in axes.lines] == ["CFN (1 seed)"]


def test_noise_bars_average_over_the_run(tmp_path):
    for bonus in ("cfn", "rnd"):
        for noise in (0.5, 0.0):
            for seed in (0, 1):
                make_run(tmp_path, bonus, seed, config={"env.action_noise": noise}, returns=(seed, 1 - noise))
    axes = draw("gridworld_noise", tmp_path).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "0.5"]
    assert bar_heights(axes) == [pytest.approx([0.75, 0.5])] * 2
    assert axes.get_legend_handles_labels()[1] == ["CFN", "RND"]


def test_a_missing_bar_is_a_gap(tmp_path):
    for noise in (0.0, 0.5):
        make_run(tmp_path, config={"env.action_noise": noise})
    make_run(tmp_path, "rnd", config={"env.action_noise": 0.0})
    heights = bar_heights(draw("gridworld_noise", tmp_path).axes[0])
    assert heights == [pytest.approx([0.5, 0.5]), pytest.approx([0.5, np.nan], nan_ok=True)]


def test_while_nobody_has_scored_what_was_seen_is_drawn(tmp_path):
    for bonus in ("cfn", "rnd"):
        for sticky in (0.0, 0.75):
            make_run(tmp_path, bonus, env="montezuma", returns=(0, 0), config={"env.sticky": sticky})
    scores, states = draw("montezuma_curves", tmp_path).axes
    assert not scores.lines[0].get_ydata().any()
    assert states.lines[0].get_ydata() == pytest.approx([10, 20])
    scores, states = draw("montezuma_sticky", tmp_path).axes
    assert (bar_heights(scores), bar_heights(states)) == ([[0, 0]] * 2, [[20, 20]] * 2)
    make_run(tmp_path, seed=1, env="montezuma", returns=(0, 100), config={"env.sticky": 0.0})
    assert all(len(draw(name, tmp_path).axes) == 1 for name in ("montezuma_curves", "montezuma_sticky"))


def test_tasks_and_modes_have_panels(tmp_path):
    tasks = [("antmaze", ""), ("fetch_push", "hard"), ("fetch_push", "medium"), ("fetch_slide", "medium")]
    for env, mode in tasks:
        for bonus in ("cfn", "none"):
            for seed in (0, 1):
                make_run(tmp_path, bonus, seed, env, "sac", (0, seed), config={"env.mode": mode})
    figure = draw("fetch", tmp_path)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    titles = ["Ant U-Maze", "FetchPush, hard", "FetchPush, medium", "FetchSlide, medium"]
    assert [axes.get_title() for axes in shown] == titles
    assert [line.get_label() for line in shown[0].lines] == ["CFN", "SAC"]
    assert shown[0].lines[0].get_ydata() == pytest.approx([0, 0.5])
    assert all(axes.get_xlim()[0] == 0 and axes.get_xlim()[1] >= 200 for axes in shown), "all of it is to be seen"


@pytest.mark.parametrize("name", ["d4rl", "fetch"])
def test_tasks_stand_where_the_paper_has_them_also_if_some_are_missing(tmp_path, name):
    cells = plan(CONF, name, "paper").cells
    whole, gaps = tmp_path / "whole", tmp_path / "gaps"
    for i, cell in enumerate(cells):
        planned(name, whole, cell)
        if i not in (1, 4, 7):  # the second task of Fetch
            planned(name, gaps, cell)
    found = members(load_runs([whole])[0], name, CONF)
    axes = [axes for axes in FIGURES[name].draw(found, MEAN).axes if axes.get_visible()]
    titles = [one.get_title() for one in axes]
    if name == "d4rl":  # the two most challenging tasks in the bottom row (Figure 5)
        assert titles == ["Pen", "Door", "Hammer", "Ant U-Maze", "Relocate"]
        return
    robots, modes = ("FetchPush", "FetchSlide", "FetchPickAndPlace"), ("default", "medium", "hard")
    assert titles == [f"{robot}, {mode}" for robot in robots for mode in modes]
    figure = FIGURES[name].draw(members(load_runs([gaps])[0], name, CONF), MEAN)
    assert [one.get_title() for one in figure.axes] == titles
    assert [text.get_text() for text in figure.axes[1].texts] == ["no run"]
    assert figure.axes[2].lines


def test_the_legend_has_every_method_of_every_panel(tmp_path):
    for env, bonuses in (("antmaze", ("cfn", "rnd")), ("pen", ("cfn", "rnd", "none"))):
        for bonus in bonuses:
            make_run(tmp_path, bonus, env=env, agent="sac")
            if env == "antmaze":  # a solid and a dotted line each
                make_run(tmp_path, bonus, 1, env, "sac", returns=(0,), mse=(1,))
    (legend,) = draw("d4rl", tmp_path).legends
    assert [text.get_text() for text in legend.get_texts()] == ["CFN", "RND", "SAC"]


def test_a_method_without_count_tables_is_said(tmp_path):
    make_run(tmp_path)
    make_run(tmp_path, "rnd", tables=0)
    cfn, rnd = draw("gridworld_counts", tmp_path).axes
    assert cfn.lines
    assert [text.get_text() for text in rnd.texts] == ["no count table yet"]


def test_bars_of_different_tasks_are_not_pooled(tmp_path):
    for env, score in (("gridworld", 1), ("gridworld_small", 0)):
        make_run(tmp_path, env=env, returns=(score, score), config={"env.action_noise": 0.5})
    make_run(tmp_path, "rnd", config={"env.action_noise": None})
    axes = draw("gridworld_noise", tmp_path).axes[0]
    assert bar_heights(axes) == [[1], [0]], "and what has no level has no bar"
    assert axes.get_legend_handles_labels()[1] == ["CFN, Visual Gridworld", "CFN, Visual Gridworld, small"]


def test_one_task_has_room_for_goals_and_states(tmp_path):
    for seed in (0, 1):
        make_run(tmp_path, seed=seed, env="antmaze", agent="sac", returns=(0, seed))
    evaluations, goals, states = draw("d4rl", tmp_path).axes
    assert evaluations.lines[0].get_ydata() == pytest.approx([0, 0.5])
    assert goals.lines[0].get_ydata() == pytest.approx([0.5, 1.5]), "goals in training, summed"
    assert states.lines[0].get_ydata() == pytest.approx([10, 20])


def test_goals_are_summed_over_episodes_that_ended_together(tmp_path):
    folder = make_run(tmp_path, env="antmaze", agent="sac")
    rows = [
        {"step": 40, "train/return": 0.5, "train/episodes": 4},
        {"step": 80, "train/return": 1.0, "train/episodes": 7},
        {"step": 80, "eval/return": 0, "train/return": 1.0, "train/episodes": 7},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert draw("d4rl", tmp_path).axes[1].lines[0].get_ydata() == pytest.approx([5])


def test_panels_beside_missing_ones_have_labels_of_their_own(tmp_path):
    for mode in ("medium", "hard"):
        make_run(tmp_path, env="fetch_slide", agent="sac", config={"env.mode": mode})
    drawn = [axes for axes in draw("fetch", tmp_path).axes if axes.lines]
    assert len(drawn) == 2
    assert drawn[0].get_ylabel()
    assert all(axes.get_xlabel() for axes in drawn)


def test_scores_beyond_one_and_sizes_of_buffers(tmp_path):
    for capacity in (20_000_000, 5_000):
        make_run(tmp_path, returns=(0, 2500), config={"bonus.capacity": capacity})
    axes = draw("montezuma_buffer", tmp_path).axes[0]
    labels = [line.get_label() for line in axes.lines]
    assert labels == ["CFN, 5,000 states (1 seed)", "CFN, 20,000,000 states (1 seed)"]
    assert axes.get_ylim()[1] > 2500


@pytest.mark.parametrize("name", sorted(FIGURES.keys() - set(SEARCHES)))
def test_every_figure_is_drawn(tmp_path, name):
    cell = plan(CONF, name, "paper").cells[0]
    noise = {"env.action_noise": "0", "env.sticky": "0"}
    folders = [planned(name, tmp_path, noise | cell, seed=seed) for seed in (0, 1)]
    out, problems, table = draw_experiment(name, folders, tmp_path / "figure.png", CONF)
    assert bool(table) == (tmp_path / "figure.md").exists() == (name == "family")
    assert any(f"{name} (preset=paper) has no " in problem for problem in problems)
    image = matplotlib.image.imread(out)
    assert image.std() > 0.05
    assert np.prod(image.shape[:2]) > 100_000


def test_other_sweeps_have_no_figure(tmp_path):
    assert draw_experiment("none", [tmp_path], tmp_path / "figure.png", CONF) is None
    assert draw_experiment("zero_flips", [], tmp_path / "figure.png", CONF) is None


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_same_runs_give_the_same_file(tmp_path, ending):
    for seed in (0, 1, 2):
        make_run(tmp_path, seed=seed, returns=(0, seed))
    files = [save(draw("gridworld_curves", tmp_path, Style()), tmp_path / f"{i}.{ending}") for i in range(2)]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_picture_that_cannot_be_written_is_a_sentence(tmp_path):
    make_run(tmp_path)
    with pytest.raises(UsageError, match="cannot be written"):
        save(draw("zero_flips", tmp_path), tmp_path / "missing" / "a.png")


def test_published_figures_show_means_and_standard_errors_by_arrivals():
    published = {name: figure for name, figure in FIGURES.items() if name != "family"}  # no paper has that figure
    assert {(figure.style.stat, figure.style.counted) for figure in published.values()} == {("mean", "arrivals")}
    shown = {name: figure.style[2:4] + figure.style[5:] for name, figure in published.items()}
    assert shown.pop("gridworld_ablation") == ("eval", "rmse", 6)
    assert shown.pop("fetch") == ("train", "mse", 10)
    assert shown.pop("montezuma_curves") == ("eval", "mse", 3)
    assert shown.pop("montezuma_sticky") == ("train", "mse", 1)
    assert set(shown.values()) == {("eval", "mse", 1)}


def test_figure_2_counts_arrivals_and_leaves_out_the_goal(tmp_path):
    """A grid of 3 by 3: the start has no arrivals, and no action is taken at the goal."""
    folder = make_run(tmp_path, config={"env.size": 3})
    rows = "0 0,4,0.5,0.5,0\n1 1,1,1,0.9,4\n2 2,0,,0.7,1\n"
    (folder / "counts" / "step_000000100.csv").write_text(f"{HEADER},arrivals\n{rows}")
    figure = published("gridworld_counts", tmp_path)
    points = figure.axes[0].lines[0]
    assert (points.get_xdata().tolist(), points.get_ydata().tolist()) == ([0.5], [0.9])
    assert caption(figure) == "A point per state, 1 seed. N(s): arrivals in s. The goal cell is left out."
    points = published("zero_flips", tmp_path).axes[0].lines[0]
    assert points.get_xdata().tolist() == [0.5, 1], "Figure 10 has the goal"


def test_tables_of_older_versions_are_drawn_by_visits_and_said(tmp_path):
    make_run(tmp_path, config={"env.size": 3})
    figure = published("gridworld_counts", tmp_path)
    assert figure.axes[0].lines[0].get_xdata().tolist() == pytest.approx([n**-0.5 for n in (1, 2, 3, 4, 5)])
    assert "N(s): actions taken in s (not all runs counted arrivals)." in caption(figure)


def test_figure_3_is_the_root_over_arrivals_smoothed_over_6_evaluations(tmp_path):
    """Seeds with constant roots 0.3 and 0.5, one of them with a first value of 1.3: means (1.3 + 0.3) / 2 and so on."""
    for seed, roots in ((0, (1.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3)), (1, (0.5,) * 7)):
        folder = make_run(tmp_path, seed=seed)
        write(folder, [{"step": i, "bonus/mse": 9, "bonus/arrival_mse": root**2} for i, root in enumerate(roots, 1)])
    figure = published("gridworld_ablation", tmp_path)
    axes = figure.axes[0]
    first = [(1.3 + 0.3 * i) / (i + 1) for i in range(6)]
    assert axes.lines[0].get_ydata() == pytest.approx([(a + 0.5) / 2 for a in (*first, 0.3)])
    assert (axes.get_ylabel(), axes.get_title()) == ("root mean squared error", "Count error, over states arrived in")
    assert caption(figure).startswith(
        "Above: root mean squared error over states arrived in (floor: over visited states), "
        "averaged over the last 6 evaluations. Mean and standard error over 2 seeds. Below: a point per state"
    )


def iterations(folder, returns):
    """Write one training episode per iteration of 100 steps, and evaluations that return 0.5."""
    numbered = enumerate(returns, 1)
    write(folder, [{"step": 100 * i, "train/return": r, "train/episodes": i, "eval/return": 0.5} for i, r in numbered])


def test_figure_6_shows_training_episodes_smoothed_over_10_iterations(tmp_path):
    for mode in ("medium", "hard"):
        folder = make_run(
            tmp_path, env="fetch_push", agent="sac", config={"env.mode": mode, "eval.every": 100, "steps": 2000}
        )
        iterations(folder, [0] * 10 + [1] * 5)
    figure = published("fetch", tmp_path)
    axes = figure.axes[0]
    assert axes.lines[0].get_ydata() == pytest.approx([0] * 10 + [0.1, 0.2, 0.3, 0.4, 0.5])
    assert axes.get_ylabel() == "return, training"
    assert caption(figure) == (
        "1 seed each. Returns of training episodes, mean of each iteration of 100 steps, "
        "averaged over the last 10 iterations."
    )
    evaluated = draw("fetch", tmp_path, FIGURES["fetch"].style._replace(score="eval"))
    assert set(evaluated.axes[0].lines[0].get_ydata()) == {0.5}


def test_figure_7_right_averages_training_episodes_over_all_iterations(tmp_path):
    for seed in (0, 1):
        folder = make_run(tmp_path, seed=seed, env="montezuma", config={"env.sticky": 0.25, "eval.every": 100})
        iterations(folder, (0, 100 * seed, 200))
    figure = published("montezuma_sticky", tmp_path)
    assert bar_heights(figure.axes[0]) == [pytest.approx([(200 / 3 + 100) / 2])]
    assert figure.axes[0].get_ylabel() == "return, averaged over 3 iterations"
    assert "Returns of training episodes, mean of each iteration of 100 steps." in caption(figure)


def test_figure_7_left_smooths_evaluations_over_3_iterations(tmp_path):
    make_run(tmp_path, env="montezuma", returns=(0, 300, 600, 900), mse=(1,) * 4)
    figure = published("montezuma_curves", tmp_path)
    assert figure.axes[0].lines[0].get_ydata() == pytest.approx([0, 150, 300, 600])
    assert caption(figure) == "1 seed each. Returns of evaluations, averaged over the last 3 evaluations."


@pytest.mark.parametrize(
    ("score", "title"), [("eval", "no evaluation has scored"), ("train", "no training episode has scored")]
)
def test_it_is_said_which_returns_are_all_zero(tmp_path, score, title):
    folder = make_run(tmp_path, env="montezuma", config={"eval.every": 100})
    write(folder, [{"step": 100, "eval/return": 0, "train/return": 0, "train/episodes": 1, "explore/states": 3}])
    figure = draw("montezuma_curves", tmp_path, MEAN._replace(score=score))
    assert figure.axes[1].get_title() == title
