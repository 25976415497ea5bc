"""`cfn compare`, within this process."""

import json

import pytest
from folders import make_run


def make_sides(root, env="gridworld", a=(1, 2, 3), b=(0, 1, 2, 1)):
    """Runs of CFN and RND whose scores, averaged over steps, are given."""
    for bonus, scores in (("cfn", a), ("rnd", b)):
        for seed, score in enumerate(scores):
            make_run(root, bonus, seed, env, returns=(score, score), tables=0)


def lines(out):
    """The cells of each row of the table, by task."""
    rows = [line.strip("|").split("|") for line in out.splitlines() if line.startswith("|")]
    return {task.strip(): [cell.strip() for cell in cells] for task, *cells in rows[2:]}


def test_two_settings_of_one_folder(call, tmp_path):
    make_sides(tmp_path / "runs")
    code, out, err = call("compare", "runs", "--a", "bonus=cfn", "--b", "bonus=rnd")
    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == ["A: CFN (bonus=cfn)  ", "B: RND (bonus=rnd)  "]
    # 1 against 0, 1, 1, 2: 1 + 1/2 + 1/2; 2: 3 + 1/2; 3: 4. Together 9.5 of 12 pairs.
    row = lines(out)["gridworld"]
    assert row[:5] == ["3", "4", "200", "2", "1"]
    assert row[5].startswith("1 (")
    assert row[6].startswith("0.792 (")
    assert row[7] == "9.5"
    assert list(lines(out)) == ["gridworld"], "one task has no row over all tasks"
    assert "A, B: mean over seeds of returns of evaluations, averaged over steps, up to the last step" in out


def test_two_folders_give_the_same_as_two_filters(call, tmp_path):
    make_sides(tmp_path / "runs")
    by_filter = lines(call("compare", "runs", "--a", "bonus=cfn", "--b", "bonus=rnd")[1])
    code, out, err = call("compare", "runs/gridworld/rainbow-cfn", "runs/gridworld/rainbow-rnd")
    assert (code, err) == (0, "")
    assert lines(out) == by_filter
    assert "B: RND (runs/gridworld/rainbow-rnd)" in out
    mirrored = lines(call("compare", "runs/gridworld/rainbow-rnd", "runs/gridworld/rainbow-cfn")[1])["gridworld"]
    assert (mirrored[5].split()[0], mirrored[7], mirrored[8]) == ("-1", "2.5", by_filter["gridworld"][8])


def test_all_tasks_together(call, tmp_path):
    make_sides(tmp_path / "runs", "taxi5", (0.5, 0.6, 0.7), (0.1, 0.2, 0.3))
    make_sides(tmp_path / "runs", "taxi10", (0, 0, 1), (0, 0, 1))
    sides = ("--a", "bonus=cfn", "--b", "bonus=rnd")
    out = call("compare", "runs", *sides)[1]
    table = lines(out)
    assert table["all 2 tasks"][:3] == ["6", "6", ""]
    assert table["all 2 tasks"][3:5] == ["0.467", "0.267"], "(0.6 + 1/3) / 2 and (0.2 + 1/3) / 2"
    assert table["all 2 tasks"][6].startswith("0.75 ("), "(1 + 1/2) / 2"
    assert table["all 2 tasks"][7] == "13.5", "9 and 4.5"
    assert "A's mean is higher on 1 of 2 tasks, B's on 0. Wins of A: 1, ties: 1, losses: 0" in out
    make_sides(tmp_path / "runs", "pendulum", (-100, -200), (-300, -400))
    table = lines(call("compare", "runs", *sides)[1])
    assert table["all 3 tasks"][3:6] == ["", "", ""], "returns of -100 and success rates have no common scale"
    assert table["all 3 tasks"][6].startswith("0.833 ("), "but a probability of improvement"
    assert list(lines(call("compare", "runs", *sides, "--where", "env=taxi5,taxi10")[1])) == [
        "taxi10", "taxi5", "all 2 tasks",
    ]  # fmt: skip


def test_a_metric_is_compared_by_its_last_value(call, tmp_path):
    make_run(tmp_path / "runs", returns=(0, 0, 0), mse=(0, 0, 0))
    make_run(tmp_path / "runs", "rnd", returns=(0, 0), mse=(0, 0))
    sides = ("--a", "bonus=cfn", "--b", "bonus=rnd")
    code, out, err = call("compare", "runs", *sides, "--metric", "explore/states")
    assert code == 0
    assert lines(out)["gridworld"][2:5] == ["200", "20", "20"], "at step 200, which both have"
    assert err == "cfn: gridworld: runs end between steps 200 and 300; the first 200 are compared\n"
    assert "mean over seeds of the last explore/states, up to the last step" in out
    code, _, err = call("compare", "runs", *sides, "--metric", "explore/state")
    assert code == 1
    assert err.startswith("cfn: --metric explore/state: no run has it; some that exist are explore/states, bonus/")
    code, _, err = call("compare", "runs", *sides, "--metric", "explore/states", "--score", "eval")
    assert (code, err) == (1, "cfn: --score and --metric both name what is compared: choose one\n")


def test_the_returns_of_training(call, tmp_path):
    make_sides(tmp_path / "runs", a=(9, 9), b=(9, 9))
    code, out, _ = call("compare", "runs", "--a", "bonus=cfn", "--b", "bonus=rnd", "--score", "train")
    assert code == 0
    assert "mean over seeds of returns of training episodes" in out
    assert float(lines(out)["gridworld"][3]) <= 1, "the returns of evaluations are 9"


def test_unfinished_runs_are_compared_over_common_steps_and_runs_without_a_score_left_out(call, tmp_path):
    make_run(tmp_path / "runs", seed=0, returns=(1, 1, 9), mse=(0, 0, 0))
    make_run(tmp_path / "runs", seed=1, returns=(1, 1), mse=(0, 0))
    make_run(tmp_path / "runs", "rnd", returns=(0, 1), mse=(0, 0))
    begun = make_run(tmp_path / "runs", "rnd", seed=1)
    (begun / "metrics.jsonl").write_text('{"step": 50, "train/return": 7}\n')
    code, out, err = call("compare", "runs", "--a", "bonus=cfn", "--b", "bonus=rnd")
    assert code == 0
    assert lines(out)["gridworld"][:5] == ["2", "1", "200", "1", "0.5"]
    assert lines(out)["gridworld"][5] == "0.5", "a single seed has no interval"
    assert err.splitlines() == [
        "cfn: left out: 1 of 2 runs of B in gridworld, without a score",
        "cfn: gridworld: runs end between steps 200 and 300; the first 200 are compared",
    ]


def test_runs_without_common_steps_are_told(call, tmp_path):
    make_run(tmp_path / "runs", returns=(0,), mse=(0,), every=100)
    make_run(tmp_path / "runs", "rnd", returns=(0,), mse=(0,), every=500)
    err = call("compare", "runs", "--a", "bonus=cfn", "--b", "bonus=rnd", "--metric", "explore/states")[2]
    assert err == "cfn: gridworld: the runs have no steps in common; the numbers are of different steps\n"


def test_a_side_without_any_score(call, tmp_path):
    make_sides(tmp_path / "runs", "taxi5")
    make_run(tmp_path / "runs")
    begun = make_run(tmp_path / "runs", "rnd")
    (begun / "metrics.jsonl").write_text('{"step": 50, "train/return": 7}\n')
    sides = ("--a", "bonus=cfn", "--b", "bonus=rnd")
    code, out, err = call("compare", "runs", *sides)
    assert (code, list(lines(out))) == (0, ["taxi5"])
    assert err == "cfn: left out: gridworld, where no run of B has a score\n"
    code, out, err = call("compare", "runs", *sides, "--where", "env=gridworld")
    assert (code, out, err) == (1, "", "cfn: left out: gridworld, where no run of B has a score\n")


def test_runs_without_evaluations_are_compared_by_training(call, tmp_path):
    for bonus in ("cfn", "rnd"):
        folder = make_run(tmp_path / "runs", bonus)
        (folder / "metrics.jsonl").write_text('{"step": 50, "train/return": 7}\n')
    code, out, err = call("compare", "runs", "--a", "bonus=cfn", "--b", "bonus=rnd")
    assert (code, lines(out)["gridworld"][3]) == (0, "7")
    assert err == "cfn: gridworld: no run has returns of --score eval; those of train are compared\n"


def test_json(call, tmp_path):
    make_sides(tmp_path / "runs", "taxi5", (1, 2, 3), (0, 1, 2))
    make_sides(tmp_path / "runs", "taxi10", (5,), (5,))
    assert call("compare", "runs", "--a", "bonus=cfn", "--b", "bonus=rnd", "--json", "out.json")[0] == 0
    content = json.loads((tmp_path / "out.json").read_text(), parse_constant=pytest.fail)
    assert (content["a"]["setting"], content["b"]["source"], len(content["a"]["runs"])) == ("CFN", "bonus=rnd", 4)
    one, five = content["tasks"][1], content["tasks"][0]
    assert [one[key] for key in ("task", "runs_a", "runs_b", "steps", "mean_a", "mean_b", "u")] == [
        "taxi5", 3, 3, 200, 2, 1, 7,
    ]  # fmt: skip
    assert one["difference"]["centre"] == 1
    assert one["improvement"]["centre"] == pytest.approx(7 / 9)
    assert five["difference"] == {"centre": 0, "low": None, "high": None}
    assert content["all_tasks"]["difference"] is None
    assert content["balance"]["tasks"] == 2
    code, _, err = call("compare", "runs", "--a", "bonus=cfn", "--b", "bonus=rnd", "--json", "no/out.json")
    assert (code, err) == (1, "cfn: --json no/out.json cannot be written: No such file or directory\n")
    make_sides(tmp_path / "one")
    call("compare", "one", "--a", "bonus=cfn", "--b", "bonus=rnd", "--json", "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    assert (len(content["tasks"]), content["all_tasks"]) == (1, None)


def test_the_same_setting_is_refused_in_filters_and_told_of_folders(call, tmp_path):
    for version in ("before", "after"):
        for seed in (0, 1):
            make_run(tmp_path / version, seed=seed)
    code, out, err = call("compare", "before", "after")
    assert (code, lines(out)["gridworld"][:2]) == (0, ["2", "2"]), "the code may have changed between them"
    sentence = "A (before) and B (after) have the same setting in gridworld (CFN); only their runs differ"
    assert err == f"cfn: {sentence}\n"
    code, _, err = call("compare", "before", "--a", "seed=0", "--b", "seed=1")
    sentence = "A (seed=0) and B (seed=1) have the same setting in gridworld (CFN): choose settings that differ"
    assert (code, err) == (1, f"cfn: {sentence}\n")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ("runs", 1, "1 folder is named: name two, or choose two settings with --a KEY=VALUE and --b KEY=VALUE"),
        ("runs runs runs", 1, "3 folders are named: name two, or choose two settings with --a KEY=VALUE and --b "),
        ("runs --a bonus=cfn", 1, "--a needs --b: name both settings"),
        ("runs --b bonus=cfn", 1, "--b needs --a: name both settings"),
        ("--a bonus=cfn --b bonus=rnd runs", 2, "argument --b: runs is not KEY=VALUE; name folders before --b (see"),
        ("runs --a =cfn --b bonus=rnd", 2, "argument --a: =cfn is not KEY=VALUE"),
        ("runs --a bonus=cnf --b bonus=rnd", 1, "--a bonus=cnf matches none of the 7 runs: bonus is cfn, rnd"),
        ("runs --a bonus=cfn --b bonus=rnd --where env=x", 1, "--where env=x matches none of the 7 runs: env is grid"),
        ("runs --a bonus=cfn --b agent=rainbow", 1, "3 runs are in both A (bonus=cfn) and B (agent=rainbow), such as"),
        ("runs runs", 1, "7 runs are in both A (runs) and B (runs)"),
        ("runs empty", 1, "empty is empty"),
        ("runs missing", 1, "missing: there is no such folder"),
        ("runs --a bonus=cfn,rnd --b bonus=count", 1, "--b bonus=count matches none of the 7 runs"),
        ("runs --a bonus=cfn --b bonus=rnd --score best", 2, "argument --score: invalid choice: 'best' (choose from"),
    ],
)
def test_bad_input_is_one_sentence(call, tmp_path, arguments, code, sentence):
    make_sides(tmp_path / "runs")
    (tmp_path / "empty").mkdir()
    done = call("compare", *arguments.split())
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"cfn: {sentence}")
    assert len(done.stderr.splitlines()) == 1


def test_pooled_settings(call, tmp_path):
    for scale in (1, 2):
        make_run(tmp_path / "runs", config={"bonus.scale": scale}, returns=(scale, scale))
    make_run(tmp_path / "runs", "rnd")
    sides = ("--a", "bonus=cfn", "--b", "bonus=rnd")
    code, _, err = call("compare", "runs", *sides)
    assert code == 1
    assert "A (bonus=cfn) has 2 settings in gridworld, which differ in bonus.scale (1, 2)" in err
    code, out, _ = call("compare", "runs", *sides, "--pool")
    assert (code, lines(out)["gridworld"][:4]) == (0, ["2", "1", "200", "1.5"])
    assert out.startswith("A: 2 settings, pooled (bonus=cfn)")
