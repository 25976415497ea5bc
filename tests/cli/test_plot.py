"""`cfn plot`, within this process."""

import csv

import matplotlib.image
import pytest
from folders import make_run


def test_plot_draws_everything_that_runs_hold(call, tmp_path):
    for noise in (0, 0.5):
        for seed in (0, 1):
            make_run(tmp_path / "runs", seed=seed, config={"env.action_noise": noise, "env.size": 8})
    code, out, err = call("plot", "runs", "--table", "--seeds", "--stat", "mean")
    assert (code, err) == (0, "")
    names = ["curve", "by_env.action_noise", "count_error", "scatter", "maps"]
    pictures = [f"plots/gridworld-{name}.png" for name in names]
    assert out.splitlines()[:7] == [*pictures, "plots/table.md", "plots/table.csv"]
    for picture in pictures:
        assert matplotlib.image.imread(tmp_path / picture).std() > 0.05
    markdown = (tmp_path / "plots" / "table.md").read_text()
    assert markdown in out
    assert "| gridworld | CFN, env.action_noise=0.5 | 2 | 200 | 1 (1 to 1) | 0.5 (0.5 to 0.5) | 100% |" in markdown
    table = (tmp_path / "plots" / "table.csv").read_text().splitlines()
    assert table[0].startswith(
        "environment,method,seeds,seeds_with_score,steps,most_steps,stat,final_score,final_score_low,"
    )
    assert table[1].endswith(",1,50.5,501"), "all scored; the median speed; the most memory"


@pytest.mark.parametrize("ending", ["pdf", "svg"])
def test_other_formats(call, tmp_path, ending):
    make_run(tmp_path / "runs", tables=0, mse=(0, 0))
    code, out, _ = call("plot", "runs/gridworld", "--out", "there/deep", "--format", ending)
    assert (code, out.split()) == (0, [f"there/deep/gridworld-curve.{ending}"])
    start = (tmp_path / "there" / "deep" / f"gridworld-curve.{ending}").read_bytes()[:400]
    assert {"pdf": b"%PDF", "svg": b"<svg"}[ending] in start


@pytest.mark.thorough
def test_returns_and_errors_are_chosen(call, tmp_path):
    for seed in (0, 1):
        make_run(tmp_path / "runs", seed=seed, returns=(7, 7), config={"eval.every": 100})
    code, out, err = call("plot", "runs", "--table", "--score", "train", "--error", "rmse", "--stat", "mean")
    assert (code, err) == (0, "")
    assert "| gridworld | CFN | 2 | 200 | 1 (1 to 1) | 0.75 (0.5 to 1) |" in out, "0 and 1; 1 and 1"
    assert "| gridworld | CFN | 2 | 200 | 7 (7 to 7) | 7 (7 to 7) |" in call("plot", "runs", "--table").stdout


@pytest.mark.parametrize(("option", "values"), [("--score", ("eval", "train")), ("--error", ("mse", "rmse"))])
def test_unknown_values_are_refused_with_the_right_ones(call, tmp_path, option, values):
    make_run(tmp_path / "runs")
    code, _, err = call("plot", "runs", option, "nope")
    assert code == 2
    assert err.startswith(f"cfn: argument {option}: invalid choice: 'nope'")
    assert all(value in err for value in values)
    assert len(err.splitlines()) == 1


def test_the_papers_figures_have_the_papers_statistic_unless_another_is_named(call, tmp_path):
    for seed in range(4):  # one of four scores: the interquartile mean is 0
        overrides = ["experiment=gridworld_curves", "preset=mini"]
        make_run(tmp_path / "runs", seed=seed, env="gridworld_small", returns=(seed // 3,) * 2, overrides=overrides)
    arguments = ("plot", "runs", "--figure", "gridworld_curves", "--table", "--out", "there")
    assert "| gridworld_small | CFN | 4 | 200 | 0.25 (0 to 0.5) |" in call(*arguments).stdout
    assert "| gridworld_small | CFN | 4 | 200 | 0 (0 to " in call(*arguments, "--stat", "iqm").stdout
    assert "| gridworld_small | CFN | 4 | 200 | 0 (0 to " in call("plot", "runs", "--table").stdout


def test_the_table_of_a_search_is_printed_and_written(call, tmp_path):
    for scale in (0.1, 0.01):
        overrides = ["experiment=scale_search", f"bonus.scale={scale}"]
        make_run(tmp_path / "runs", returns=(scale, scale), config={"bonus.scale": scale}, overrides=overrides)
    code, out, err = call("plot", "runs", "--figure", "scale_search", "--table")
    assert (code, err) == (0, "")
    written = (tmp_path / "plots" / "scale_search.md").read_text()
    assert out == f"plots/scale_search.png\nplots/scale_search.md\n\n{written}"
    assert "| gridworld | CFN | 0.1 | 0.1 |  | 1 | best |" in written
    assert not (tmp_path / "plots" / "table.md").exists()
    (tmp_path / "plots" / "scale_search.md").unlink()
    assert call("plot", "runs", "--figure", "scale_search").stdout == "plots/scale_search.png\n"
    (tmp_path / "plots" / "scale_search.md").mkdir()
    code, _, err = call("plot", "runs", "--figure", "scale_search", "--table")
    assert code == 1
    assert "scale_search.md cannot be written: Is a directory" in err


def test_a_figure_of_the_paper_with_a_method_missing(call, tmp_path):
    for bonus in ("rnd", "cfn"):
        make_run(tmp_path / "runs", bonus, overrides=["experiment=gridworld_counts", "preset=mini"])
    code, out, err = call("plot", "runs", "--figure", "gridworld_counts")
    assert (code, out) == (0, "plots/gridworld_counts.png\n")
    assert err.splitlines() == [
        "cfn: gridworld_counts (preset=mini) has no seed 1, 2 of: bonus=cfn; bonus=rnd",
        "cfn: gridworld_counts (preset=mini) has no run of: bonus=pixelcnn",
    ]


def test_an_unknown_figure_is_refused_with_the_names(call, tmp_path):
    make_run(tmp_path / "runs")
    code, _, err = call("plot", "runs", "--figure", "nope")
    assert code == 2
    assert err.startswith("cfn: argument --figure: invalid choice: 'nope'")
    assert "zero_flips" in err
    assert len(err.splitlines()) == 1


def test_what_can_be_drawn_is_drawn(call, tmp_path):
    whole = make_run(tmp_path / "runs", seed=0)
    with (whole / "metrics.jsonl").open("a") as file:
        file.write('{"step": 300, "eval/ret')
    short = make_run(tmp_path / "runs", seed=1, returns=(0.5,), mse=(0.1,))
    broken = make_run(tmp_path / "runs", seed=2)
    (broken / ".hydra" / "config.yaml").write_text("a: [")
    begun = make_run(tmp_path / "runs", seed=3, returns=(), mse=())
    (short / "counts" / "step_000000100.csv").write_text("state,count\nx")
    code, out, err = call("plot", "runs")
    assert code == 0
    assert "plots/gridworld-scatter.png" in out
    sentences = err.splitlines()
    assert len(sentences) == 4
    assert f"left out: {broken.relative_to(tmp_path)}/.hydra/config.yaml is not valid YAML" in sentences[0]
    assert f"left out: {begun.relative_to(tmp_path)} has no metrics yet" in sentences[1]
    assert sentences[2].startswith("cfn: gridworld, CFN: seeds end between steps 100 and 200; lines are dotted")
    assert "is not a count table: it needs the columns state, count" in sentences[3]


def test_what_cannot_be_read_is_not_drawn(call, tmp_path):
    good, garbled = make_run(tmp_path / "runs"), make_run(tmp_path / "runs", seed=1)
    (good / "counts" / "step_000000100.csv").write_text("x,y\n")
    (garbled / "metrics.jsonl").write_text("\x00garbage\n" * 9)
    code, out, err = call("plot", "runs")
    assert code == 0
    assert "gridworld-curve" in out
    assert "scatter" not in out
    assert f"left out: {garbled.relative_to(tmp_path)} has no metrics that can be drawn" in err
    (tmp_path / "taken").touch()
    code, out, err = call("plot", "runs", "--out", "taken")
    assert code == 1
    assert "--out taken: this is a file; choose a writable folder" in err


def test_runs_that_do_not_overlap_are_drawn_and_said(call, tmp_path):
    make_run(tmp_path / "runs", seed=0, every=100, tables=0, mse=(0, 0))
    make_run(tmp_path / "runs", seed=1, every=1000, tables=0, mse=(0, 0))
    code, _, err = call("plot", "runs")
    assert (code, err) == (
        0,
        "cfn: gridworld, CFN: the seeds have no steps in common; lines are dotted where some seeds have no data\n",
    )


def test_runs_without_evaluations_show_their_training(call, tmp_path):
    folder = make_run(tmp_path / "runs", tables=0)
    (folder / "metrics.jsonl").write_text('{"step": 10, "train/return": 1}\n{"step": 20, "train/return": 2}\n')
    code, out, err = call("plot", "runs", "--table")
    assert (code, err) == (0, "cfn: gridworld, CFN: no evaluations yet; training returns are shown instead\n")
    assert "| gridworld | CFN | 1 | 20 | 1.5 |" in out


def test_settings_that_have_not_come_equally_far_are_said(call, tmp_path):
    make_run(tmp_path / "runs", tables=0, mse=(0, 0))
    make_run(tmp_path / "runs", "rnd", tables=0, returns=(0,), mse=(0,))
    far = "(RND at step 100, CFN at 200)"
    averaged = "averages cover the steps that all of them have"
    sentence = f"cfn: gridworld: settings end at different steps {far}; {averaged}\n"
    assert call("plot", "runs")[::2] == (0, sentence)


def test_a_bad_path_among_good_ones_is_said(call, tmp_path):
    make_run(tmp_path / "runs", tables=0, mse=(0, 0))
    (tmp_path / "stray.txt").touch()
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "run").symlink_to(tmp_path / "runs")
    (tmp_path / "links" / "circle").symlink_to(tmp_path / "links")
    code, out, err = call("plot", "links", "stray.txt", "missing")
    assert (code, out) == (0, "plots/gridworld-curve.png\n"), "links are followed"
    assert err.splitlines() == [
        "cfn: stray.txt is a file: name a run folder, or a folder above runs",
        "cfn: missing: there is no such folder",
    ]


def test_numbers_beyond_all_bounds_stop_nothing(call, tmp_path):
    make_run(tmp_path / "runs", tables=0, mse=(0, 0))
    folder = make_run(tmp_path / "runs", seed=1, tables=0)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(f'{{"step": {"9" * 400}, "eval/return": 1}}\n{{"step": 300, "eval/return": {"9" * 400}}}\n')
    assert call("plot", "runs", "--table")[0] == 0
    assert call("runs", "runs")[0] == 0


def test_an_older_table_is_used_where_the_newest_cannot(call, tmp_path):
    folder = make_run(tmp_path / "runs", tables=2)
    (folder / "counts" / "step_000000200.csv").write_text("state,count,true_bonus,predicted_bonus\n")
    code, out, err = call("plot", "runs")
    assert code == 0
    assert "plots/gridworld-scatter.png" in out
    assert "step_000000200.csv has no states" in err


def test_runs_of_any_kind_are_drawn_together(call, tmp_path):
    slippery = {"config": {"env.kwargs.map_name": "8x8"}, "overrides": ["+env.kwargs.map_name=8x8"]}
    make_run(tmp_path / "runs", env="FrozenLake-v1", **slippery)
    make_run(tmp_path / "runs", "rnd", env="FrozenLake-v1", config={"env.kwargs": {}})
    make_run(tmp_path / "runs", "none", agent="sac", env="pen", tables=0)
    make_run(tmp_path / "runs", "none", env="atari", config={"env.game": "Pong"}, tables=0)
    make_run(tmp_path / "runs", "none", env="atari-Pong", config={"env.game": "Pong"}, seed=1, tables=0)
    code, out, err = call("plot", "runs", "--table")
    assert (code, err) == (0, "")
    assert "| FrozenLake-v1 | RND | 1 |" in out
    assert "| atari Pong | no bonus | 2 |" in out, "the folders of older releases do not name the game"
    assert "plots/atari_Pong-curve.png\n" in out


def test_the_numbers_behind_each_picture_are_written(call, tmp_path):
    for noise in (0, 0.5):
        for seed in (0, 1):
            make_run(tmp_path / "runs", seed=seed, returns=(seed, 2), config={"env.action_noise": noise, "env.size": 8})
    code, out, err = call("plot", "runs", "--data", "--stat", "mean")
    assert (code, err) == (0, "")
    names = ["curve", "by_env.action_noise", "count_error", "scatter", "maps"]
    assert [line for line in out.splitlines() if line.endswith("csv")] == [f"plots/gridworld-{n}.csv" for n in names]
    tables = {}
    for name in names:
        with (tmp_path / f"plots/gridworld-{name}.csv").open(newline="") as file:
            tables[name] = list(csv.DictReader(file))
    panel = "gridworld: evaluations"
    curve = [
        row
        for row in tables["curve"]
        if row["panel"] == panel and row["series"] == "CFN, env.action_noise=0.5 (2 seeds)"
    ][:6]
    assert sorted((row["kind"], row["x"], row["y"]) for row in curve) == [
        ("high", "100.0", "1.0"),
        ("high", "200.0", "2.0"),
        ("line", "100.0", "0.5"),
        ("line", "200.0", "2.0"),
        ("low", "100.0", "0.0"),
        ("low", "200.0", "2.0"),
    ]
    bars = tables["by_env.action_noise"]
    assert {row["kind"] for row in bars} == {"bar", "low", "high"}
    assert {row["x"] for row in bars} == {"0", "0.5"}
    assert {row["kind"] for row in tables["maps"]} == {"cell"}
    assert all(row["value"] for row in tables["maps"])
    assert len(tables["scatter"]) > 4


@pytest.mark.thorough
def test_one_stray_run_can_be_left_out(call, tmp_path):
    for seed in (0, 1):
        make_run(tmp_path / "runs", seed=seed, config={"bonus.scale": 0.1})
    make_run(tmp_path / "runs", seed=0, config={"bonus.scale": 0.5})
    assert "bonus.scale" in call("plot", "runs", "--table").stdout
    out = call("plot", "runs", "--table", "--where", "bonus.scale=0.1").stdout
    assert "bonus.scale" not in out
    assert "| gridworld | CFN | 2 |" in out


def test_the_numbers_behind_a_picture_name_each_of_many_settings(call, tmp_path):
    """More settings than colours, and single seeds, whose intervals have no ends."""
    for number in range(10):
        make_run(tmp_path / "runs", returns=(number, number), config={"bonus.scale": number / 100})
    code, _, err = call("plot", "runs", "--data")
    assert (code, "This is a bug" in err) == (0, False)
    with (tmp_path / "plots/gridworld-curve.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    curve = {
        float(row["y"]): row["series"]
        for row in table
        if row["panel"] == "gridworld: evaluations" and row["kind"] == "line"
    }
    assert [curve[number] for number in range(10)] == [
        f"CFN, bonus.scale={number / 100:g} (1 seed)" for number in range(10)
    ]
    with (tmp_path / "plots/gridworld-count_error.csv").open(newline="") as file:
        series = {row["series"] for row in csv.DictReader(file)}
    assert {"CFN, bonus.scale=0.01", "CFN, bonus.scale=0.01, floor"} <= series
