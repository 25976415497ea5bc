"""`cfn plot`, `cfn runs` and `cfn report` as commands; most within this process, for speed."""

import errno
import fcntl
import json
import os
import sys
from pathlib import Path

import matplotlib.image
import pytest
from folders import make_run

from cfn import cli


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """`run("plot", "runs")`: the exit code, what was printed, and what was complained of."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["cfn", *map(str, arguments)])
        try:
            code = cli.main()
        except SystemExit as exit:
            code = exit.code
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return call


def test_plot_draws_everything_that_runs_hold(run, tmp_path):
    for noise in (0, 0.5):
        for seed in (0, 1):
            make_run(tmp_path / "runs", seed=seed, config={"env.action_noise": noise, "env.size": 8})
    code, out, err = run("plot", "runs", "--table", "--seeds", "--stat", "mean")
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
def test_other_formats(run, tmp_path, ending):
    make_run(tmp_path / "runs", tables=0, mse=(0, 0))
    code, out, _ = run("plot", "runs/gridworld", "--out", "there/deep", "--format", ending)
    assert (code, out.split()) == (0, [f"there/deep/gridworld-curve.{ending}"])
    start = (tmp_path / "there" / "deep" / f"gridworld-curve.{ending}").read_bytes()[:400]
    assert {"pdf": b"%PDF", "svg": b"<svg"}[ending] in start


def test_a_figure_of_the_paper_with_a_method_missing(run, tmp_path):
    for bonus in ("rnd", "cfn"):
        make_run(tmp_path / "runs", bonus, agent="random", overrides=["experiment=gridworld_counts", "preset=mini"])
    code, out, err = run("plot", "runs", "--figure", "gridworld_counts")
    assert (code, out) == (0, "plots/gridworld_counts.png\n")
    assert err.splitlines() == [
        "cfn: gridworld_counts (preset=mini) has no seed 1, 2 of: bonus=cfn; bonus=rnd",
        "cfn: gridworld_counts (preset=mini) has no run of: bonus=pixelcnn",
    ]


def test_an_unknown_figure_is_refused_with_the_names(run, tmp_path):
    make_run(tmp_path / "runs")
    code, _, err = run("plot", "runs", "--figure", "nope")
    assert code == 2
    assert err.startswith("cfn: argument --figure: invalid choice: 'nope'")
    assert "zero_flips" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("command", ["plot", "runs", "report"])
def test_folders_without_runs(run, tmp_path, command):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    assert run(command, "empty")[::2] == (1, "cfn: empty is empty\n")
    sentence = "cfn: other holds no run (none of its folders has a metrics.jsonl)\n"
    assert run(command, "other")[::2] == (1, sentence)
    assert run(command, "missing")[::2] == (1, "cfn: missing: there is no such folder\n")
    code, _, err = run(command, "other/file")
    assert (code, err) == (1, "cfn: other/file is a file: name the folder of a run, or one that holds runs\n")
    assert not (tmp_path / "plots").exists()


def test_what_can_be_drawn_is_drawn(run, tmp_path):
    whole = make_run(tmp_path / "runs", seed=0)
    with (whole / "metrics.jsonl").open("a") as file:
        file.write('{"step": 300, "eval/ret')
    short = make_run(tmp_path / "runs", seed=1, returns=(0.5,), mse=(0.1,))
    broken = make_run(tmp_path / "runs", seed=2)
    (broken / ".hydra" / "config.yaml").write_text("a: [")
    begun = make_run(tmp_path / "runs", seed=3, returns=(), mse=())
    (short / "counts" / "step_000000100.csv").write_text("state,count\nx")
    code, out, err = run("plot", "runs")
    assert code == 0
    assert "plots/gridworld-scatter.png" in out
    sentences = err.splitlines()
    assert len(sentences) == 4
    assert f"left out: {broken.relative_to(tmp_path)}/.hydra/config.yaml is not valid YAML" in sentences[0]
    assert f"left out: {begun.relative_to(tmp_path)} has no metrics yet" in sentences[1]
    assert sentences[2].startswith("cfn: gridworld, CFN: seeds end between steps 100 and 200; lines are dotted")
    assert "is not a table of state, count" in sentences[3]


def test_what_cannot_be_read_is_not_drawn(run, tmp_path):
    good, garbled = make_run(tmp_path / "runs"), make_run(tmp_path / "runs", seed=1)
    (good / "counts" / "step_000000100.csv").write_text("x,y\n")
    (garbled / "metrics.jsonl").write_text("\x00garbage\n" * 9)
    code, out, err = run("plot", "runs")
    assert code == 0
    assert "gridworld-curve" in out
    assert "scatter" not in out
    assert f"left out: {garbled.relative_to(tmp_path)} has no metrics that could be drawn" in err
    (tmp_path / "taken").touch()
    code, out, err = run("plot", "runs", "--out", "taken")
    assert code == 1
    assert "--out taken: this is a file; choose a folder" in err


def test_runs_that_do_not_overlap_are_drawn_and_said(run, tmp_path):
    make_run(tmp_path / "runs", seed=0, every=100, tables=0, mse=(0, 0))
    make_run(tmp_path / "runs", seed=1, every=1000, tables=0, mse=(0, 0))
    code, _, err = run("plot", "runs")
    assert (code, err) == (
        0,
        "cfn: gridworld, CFN: the seeds have no steps in common; lines are dotted where only some are\n",
    )


def test_runs_without_evaluations_show_their_training(run, tmp_path):
    folder = make_run(tmp_path / "runs", tables=0)
    (folder / "metrics.jsonl").write_text('{"step": 10, "train/return": 1}\n{"step": 20, "train/return": 2}\n')
    code, out, err = run("plot", "runs", "--table")
    assert (code, err) == (0, "cfn: gridworld, CFN: there are no evaluations yet; scores are those of training\n")
    assert "| gridworld | CFN | 1 | 20 | 1.5 |" in out


def test_settings_that_have_not_come_equally_far_are_said(run, tmp_path):
    make_run(tmp_path / "runs", tables=0, mse=(0, 0))
    make_run(tmp_path / "runs", "rnd", tables=0, returns=(0,), mse=(0,))
    far = "(RND at step 100, CFN at 200)"
    sentence = f"cfn: gridworld: the settings have not come equally far {far}; averages are over what all have\n"
    assert run("plot", "runs")[::2] == (0, sentence)


def test_a_bad_path_among_good_ones_is_said(run, tmp_path):
    make_run(tmp_path / "runs", tables=0, mse=(0, 0))
    (tmp_path / "stray.txt").touch()
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "run").symlink_to(tmp_path / "runs")
    (tmp_path / "links" / "circle").symlink_to(tmp_path / "links")
    code, out, err = run("plot", "links", "stray.txt", "missing")
    assert (code, out) == (0, "plots/gridworld-curve.png\n"), "links are followed"
    assert err.splitlines() == [
        "cfn: stray.txt is a file: name the folder of a run, or one that holds runs",
        "cfn: missing: there is no such folder",
    ]


def test_numbers_beyond_all_bounds_stop_nothing(run, tmp_path):
    make_run(tmp_path / "runs", tables=0, mse=(0, 0))
    folder = make_run(tmp_path / "runs", seed=1, tables=0)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(f'{{"step": {"9" * 400}, "eval/return": 1}}\n{{"step": 300, "eval/return": {"9" * 400}}}\n')
    assert run("plot", "runs", "--table")[0] == 0
    assert run("runs", "runs")[0] == 0


@pytest.mark.parametrize("command", ["plot", "report"])
def test_an_out_that_cannot_be(run, tmp_path, command):
    make_run(tmp_path / "runs")
    (tmp_path / "file").write_text("")
    code, _, err = run(command, "runs", "--out", "file/below/it")
    assert code == 1
    assert (
        err
        == {
            "plot": "cfn: --out file/below/it: Not a directory; choose a folder that can be written to\n",
            "report": "cfn: --out file/below: Not a directory; choose a folder that can be written to\n",
        }[command]
    )


def test_runs_lists_how_far_each_is_and_whether_it_lives(run, tmp_path):
    states = {"finished": "finished", "stopped": "stopped", "failed": "failed", "running": "killed"}
    for seed, state in enumerate(states):
        make_run(tmp_path / "outputs", seed=seed, state=state)
    alive = make_run(tmp_path / "outputs", "rnd", state="running")
    (alive / "lock").touch()
    new = make_run(tmp_path / "outputs", "count", returns=(), mse=())
    (new / "summary.json").unlink()
    odd = make_run(tmp_path / "outputs", "odd")
    (odd / "summary.json").write_text("{")
    with (alive / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, out, err = run("runs")
    header, *lines = out.splitlines()
    assert (code, err) == (0, "")
    assert header.split() == ["ENV", "AGENT", "BONUS", "SEED", "STEPS", "SCORE", "STATE", "FOLDER"]
    assert {line.split()[3]: line.split()[8] for line in lines if " cfn " in line} == dict(
        zip("0123", states.values(), strict=True)
    )
    folder = alive.relative_to(tmp_path)
    assert next(line for line in lines if " rnd " in line).split() == (
        f"gridworld rainbow rnd 0 200 of 1,000 1 running {folder}".split()
    )
    assert next(line for line in lines if " count " in line).split()[3:8] == ["0", "0", "of", "1,000", "killed"]
    assert next(line for line in lines if str(odd.relative_to(tmp_path)) in line).split()[3] == "unreadable"
    code, out, _ = run("runs", folder)
    assert out.splitlines()[1].split()[-2] == "killed", "nobody holds the lock any more"


def test_runs_says_what_it_may_not_look_into(run, tmp_path, monkeypatch):
    make_run(tmp_path / "outputs")
    (tmp_path / "outputs" / "closed").mkdir()
    scandir = os.scandir

    def refuse(path):  # as the system would, but that root may look anywhere
        if Path(path).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    code, out, err = run("runs")
    assert code == 0
    assert "gridworld" in out
    assert "outputs/closed cannot be read" in err


def test_an_older_table_is_used_where_the_newest_cannot(run, tmp_path):
    folder = make_run(tmp_path / "runs", tables=2)
    (folder / "counts" / "step_000000200.csv").write_text("state,count,true_bonus,predicted_bonus\n")
    code, out, err = run("plot", "runs")
    assert code == 0
    assert "plots/gridworld-scatter.png" in out
    assert "step_000000200.csv has no states" in err


def test_report_writes_one_file(run, tmp_path):
    make_run(tmp_path / "runs")
    code, out, err = run("report", "runs", "--out", "there/page.html", "--stat", "mean")
    assert (code, out, err) == (0, "there/page.html\n", "")
    assert "./../runs/gridworld/rainbow-cfn/0/seed%3D0/metrics.jsonl" in (tmp_path / "there" / "page.html").read_text()


@pytest.mark.parametrize("arguments", [("plot",), ("plot", "a", "--format", "bmp"), ("runs", "a", "b"), ("report",)])
def test_wrong_arguments_are_one_sentence(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("cfn: ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("command", ["plot", "runs", "report"])
def test_help(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert out.startswith(f"usage: cfn {command} ")


def test_a_closed_pipe_is_no_error_and_pytorch_is_not_needed(cfn, tmp_path):
    make_run(tmp_path / "runs")
    done = cfn("runs", "runs", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    assert "gridworld" in done.stdout
    assert "| torch\n" not in done.stderr
    assert "| matplotlib\n" not in done.stderr


def test_the_shell_completes_the_commands(run, monkeypatch):
    monkeypatch.setenv("COMP_LINE", "cfn r")
    assert set(run("-sc", "query=bash")[1].split()) == {"resume", "runs", "report"}
    monkeypatch.setenv("COMP_LINE", "cfn plot out")
    assert run("-sc", "query=bash") == (0, "", "")


def test_a_strangers_summary_is_no_surprise(run, tmp_path):
    folder = make_run(tmp_path / "runs", tables=0, mse=(0, 0))
    nonsense = {"state": None, "env": 3, "metrics": [], "steps": "x", "total_steps": {}, "seed": []}
    (folder / "summary.json").write_text(json.dumps(nonsense))
    assert run("runs", "runs")[0] == 0
    assert run("plot", "runs", "--table")[0] == 0
    (folder / "summary.json").write_text("[]")
    assert "unreadable" in run("runs", "runs")[1]
    code, _, err = run("plot", "runs", "--table")
    assert code == 1
    assert "summary.json is not a JSON object" in err
