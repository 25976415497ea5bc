import json

import matplotlib.image
import numpy as np
import pytest
import yaml

from cfn.analysis.figures import FIGURES, _member, ablation, curves, draw_experiment, noise_bars, scatters, settings


def make_run(
    tmp_path, name, seed, env="gridworld", mse=(0.1, 0.01), returns=(0, 1), noise=0.0, noisy=False, mode="",
    agent="rainbow", **bonus,
):  # fmt: skip
    folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
    (folder / ".hydra").mkdir(parents=True)
    (folder / "counts").mkdir()
    config = {"env": {"action_noise": noise, "mode": mode}, "agent": {"noisy": noisy}, "bonus": bonus, "seed": seed}
    (folder / ".hydra" / "config.yaml").write_text(yaml.safe_dump(config))
    (folder / "summary.json").write_text(json.dumps({"env": env, "agent": agent, "bonus": name, "seed": seed}))
    lines = [
        json.dumps(
            {
                "step": (i + 1) * 100,
                "bonus/mse": error + seed * 0.002,
                "bonus/floor_mse": 0.002,
                "eval/return": score,
                "explore/states": 10 * (i + 1),
                "train/return": seed if i == 0 else 1,
            }
        )
        for i, (error, score) in enumerate(zip(mse, returns, strict=True))
    ]
    (folder / "metrics.jsonl").write_text("\n".join(lines))
    rows = [f"{i} 0,{i + 1},{(i + 1) ** -0.5},{(i + 1) ** -0.5 + 0.01 * seed}" for i in range(5)]
    header = "state,count,true_bonus,predicted_bonus"
    (folder / "counts" / "step_000000200.csv").write_text("\n".join([header, *rows]))
    return folder


def test_scatters_have_a_panel_for_each_method_and_environment(tmp_path):
    folders = [make_run(tmp_path, b, s, env) for env in ("taxi5", "taxi10") for b in ("cfn", "rnd") for s in (0, 1)]
    figure = scatters([_member(folder) for folder in folders])
    assert [axes.get_title() for axes in figure.axes] == ["CFN, taxi5", "RND, taxi5", "CFN, taxi10", "RND, taxi10"]
    dashed = [sum(line.get_linestyle() == "--" for line in axes.lines) for axes in figure.axes]
    assert dashed == [1, 0, 1, 0], "RND does not mean to count"
    assert [len(axes.lines) - d for axes, d in zip(figure.axes, dashed, strict=True)] == [2, 2, 2, 2], "every seed"


def test_the_ablation_shows_mean_error_and_floor(tmp_path):
    variants = [(True, True), (True, False), (False, True), (False, False)]
    folders = [
        make_run(tmp_path, "cfn", seed, prior=prior, prioritize=prioritize)
        for prior, prioritize in variants
        for seed in (0, 1)
    ]
    figure = ablation([_member(folder) for folder in folders])
    curves = figure.axes[0].lines
    assert [line.get_label() for line in curves] == [
        "CFN",
        "CFN without priorities",
        "CFN without prior",
        "CFN without prior or priorities",
        "floor: a perfect network, these coins",
    ]
    assert curves[0].get_ydata() == pytest.approx([0.101, 0.011])
    assert curves[-1].get_ydata() == pytest.approx([0.002, 0.002])
    assert len(figure.axes) == 5


def test_zero_flips_have_a_name(tmp_path):
    assert _member(make_run(tmp_path, "cfn", 0, flips="zero")).method == "zero flips"


def test_learning_curves_are_means_over_seeds(tmp_path):
    scores = {("cfn", 0): (0, 1), ("cfn", 1): (1, 1), ("none", 0): (0, 0), ("none", 1): (0, 0)}
    folders = [
        make_run(tmp_path, name, seed, returns=returns, noisy=name == "none")
        for (name, seed), returns in scores.items()
    ]
    axes = curves([_member(folder) for folder in folders]).axes[0]
    assert [line.get_label() for line in axes.lines] == ["CFN (2 seeds)", "noisy Rainbow (2 seeds)"]
    assert axes.lines[0].get_ydata() == pytest.approx([0.5, 1])
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((0, 1)), "the standard error of 0 and 1 is 1/2"


def test_noise_bars_average_over_the_run(tmp_path):
    folders = [
        make_run(tmp_path, name, seed, noise=noise, returns=(seed, 1 - noise))
        for name in ("cfn", "rnd")
        for noise in (0.5, 0.0)
        for seed in (0, 1)
    ]
    axes = noise_bars([_member(folder) for folder in folders]).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "0.5"]
    heights = [[bar.get_height() for bar in bars] for bars in axes.containers if hasattr(bars, "patches")]
    assert heights == [pytest.approx([0.75, 0.5])] * 2


def test_tasks_and_modes_have_panels_of_evaluations_goals_and_states(tmp_path):
    tasks = [("fetch_push", "medium"), ("fetch_push", "hard"), ("fetch_slide", "medium"), ("antmaze", "")]
    folders = [
        make_run(tmp_path, name, seed, env, mode=mode, agent="sac", returns=(0, seed))
        for env, mode in tasks
        for name in ("cfn", "none")
        for seed in (0, 1)
    ]
    figure = settings([_member(folder) for folder in folders], columns=3)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    titles = [axes.get_title().strip() for axes in shown]
    assert titles == ["fetch_push medium", "fetch_push hard", "fetch_slide medium", *[""] * 6, "antmaze", "", ""]
    assert [line.get_label() for line in shown[0].lines] == ["CFN", "SAC"]
    assert shown[0].lines[0].get_ydata() == pytest.approx([0, 0.5])
    assert shown[3].lines[0].get_ydata() == pytest.approx([0.5, 1.5]), "goals in training, summed"
    assert shown[6].lines[0].get_ydata() == pytest.approx([10, 20])
    assert all(axes.get_xlim()[0] == 0 and axes.get_xlim()[1] >= 200 for axes in shown), "all of it is to be seen"


def test_scores_beyond_one_and_sizes_of_buffers(tmp_path):
    folders = [make_run(tmp_path, "cfn", 0, returns=(0, 2500), capacity=capacity) for capacity in (20_000_000, 5_000)]
    axes = FIGURES["montezuma_buffer"]([_member(folder) for folder in folders]).axes[0]
    labels = [line.get_label() for line in axes.lines]
    assert labels == ["CFN, 20,000,000 states (1 seed)", "CFN, 5,000 states (1 seed)"]
    assert axes.get_ylim()[1] > 2500


def test_a_missing_bar_is_a_gap(tmp_path):
    folders = [make_run(tmp_path, "cfn", 0, noise=noise) for noise in (0.0, 0.5)] + [make_run(tmp_path, "rnd", 0)]
    axes = noise_bars([_member(folder) for folder in folders]).axes[0]
    heights = [bar.get_height() for bars in axes.containers if hasattr(bars, "patches") for bar in bars]
    assert heights == pytest.approx([0.5, 0.5, 0.5, np.nan], nan_ok=True)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_every_figure_is_drawn(tmp_path, name):
    folders = [make_run(tmp_path, "cfn", seed, prior=True, prioritize=True) for seed in (0, 1)]
    out = draw_experiment(name, folders, tmp_path / "figure.png")
    image = matplotlib.image.imread(out)
    assert image.std() > 0.05
    assert np.prod(image.shape[:2]) > 100_000


def test_other_sweeps_have_no_figure(tmp_path):
    assert draw_experiment("none", [tmp_path], tmp_path / "figure.png") is None
    assert draw_experiment("zero_flips", [], tmp_path / "figure.png") is None
