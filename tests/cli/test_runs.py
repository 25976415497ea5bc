"""`cfn runs`, within this process."""

import csv
import errno
import fcntl
import io
import json
import os
import re
from pathlib import Path

from folders import make_run
from omegaconf import OmegaConf

from cfn.runs.sweeps import SweepRecord, new_sweep


def test_runs_lists_how_far_each_is_and_whether_it_lives(call, tmp_path):
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
        code, out, err = call("runs")
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
    code, out, _ = call("runs", folder)
    assert out.splitlines()[1].split()[-2] == "killed", "the lock is free"


def columns(out):
    """The cells of each line: two spaces or more separate them."""
    return [re.split(r" {2,}", line) for line in out.splitlines()]


def test_runs_show_the_task_and_the_keys_in_which_they_differ(call, tmp_path):
    make_run(tmp_path / "outputs", env="atari", agent="rainbow", config={"env.game": "Pong"})
    make_run(tmp_path / "outputs", env="atari-Pong", agent="rainbow", seed=1, config={"env.game": "Pong"})
    make_run(tmp_path / "outputs", env="fetch_push", agent="sac", config={"env.mode": "hard"})
    header, *lines = columns(call("runs")[1])
    assert header == ["ENV", "AGENT", "BONUS", "SEED", "STEPS", "SCORE", "STATE", "FOLDER"], "nothing differs"
    assert [line[0] for line in lines] == ["atari Pong", "atari Pong", "fetch_push hard"]
    for lr in (0.001, 0.01):
        make_run(tmp_path / "outputs", config={"bonus.lr": lr, "bonus.hidden": [4, 8]})
    broken = make_run(tmp_path / "outputs", config={"bonus.lr": 3})
    (broken / ".hydra" / "config.yaml").write_text("a: [")
    header, *lines = columns(call("runs")[1])
    assert header[-3:] == ["STATE", "SETTING", "FOLDER"]
    assert [line[-2] for line in lines if line[0] == "gridworld"] == ["bonus.lr=0.001", "bonus.lr=0.01", "finished"]
    assert all(len(line) == len(header) - 1 for line in lines if line[0] != "gridworld"), "theirs is empty"


def test_large_scores_are_whole_numbers_and_long_settings_are_cut(call, tmp_path):
    for i, score in enumerate((-10_000.0, 12_345.6, 0.43756, 1.0)):
        make_run(
            tmp_path / "outputs", returns=(0, score), config={f"agent.a_long_key_{j}": int(i == j) for j in range(4)}
        )
    header, *lines = columns(call("runs")[1])
    assert [line[header.index("SCORE")] for line in lines] == ["-10,000", "12,346", "0.4376", "1"]
    shown = [line[header.index("SETTING")] for line in lines]
    whole = [row["setting"] for row in json.loads(call("runs", "--json")[1])]
    assert shown[0] == whole[0][:57] + "..."
    assert whole[0] == "agent.a_long_key_0=1, agent.a_long_key_1=0, agent.a_long_key_2=0"


def test_only_the_live_table_is_sorted(call, tmp_path):
    make_run(tmp_path / "outputs")
    code, _, error = call("runs", "--sort", "score")
    assert code == 2
    assert "--sort score: only the live table is sorted: add --watch" in error


def test_runs_says_what_it_may_not_look_into(call, tmp_path, monkeypatch):
    make_run(tmp_path / "outputs")
    (tmp_path / "outputs" / "closed").mkdir()
    scandir = os.scandir

    def refuse(path):  # as the system would, but that root may look anywhere
        if Path(path).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    code, out, err = call("runs")
    assert code == 0
    assert "gridworld" in out
    assert "outputs/closed cannot be read" in err


def test_a_strangers_summary_is_no_surprise(call, tmp_path):
    folder = make_run(tmp_path / "runs", tables=0, mse=(0, 0))
    nonsense = {"state": None, "env": 3, "metrics": [], "steps": "x", "total_steps": {}, "seed": []}
    (folder / "summary.json").write_text(json.dumps(nonsense))
    assert call("runs", "runs")[0] == 0
    assert call("plot", "runs", "--table")[0] == 0
    (folder / "summary.json").write_text("[]")
    assert "unreadable" in call("runs", "runs")[1]
    code, _, err = call("plot", "runs", "--table")
    assert code == 1
    assert "summary.json is not a JSON object" in err


def test_runs_are_printed_for_programs(call, tmp_path):
    make_run(tmp_path / "outputs", config={"bonus.scale": 0.1})
    make_run(tmp_path / "outputs", seed=1, returns=(), mse=(), config={"bonus.scale": 0.5})
    odd = make_run(tmp_path / "outputs", "odd")
    (odd / "summary.json").write_text("{")
    rows = json.loads(call("runs", "--json").stdout)
    first = next(row for row in rows if row["seed"] == 0)
    assert first == {
        "env": "gridworld",
        "agent": "rainbow",
        "bonus": "cfn",
        "seed": 0,
        "steps": 200,
        "total_steps": 1000,
        "score": 1.0,
        "score_of": "evaluation",
        "state": "finished",
        "setting": "bonus.scale=0.1",
        "folder": first["folder"],
    }
    assert Path(tmp_path / first["folder"]).is_dir()
    unreadable = next(row for row in rows if row["state"] == "unreadable")
    assert unreadable["env"] is unreadable["steps"] is None
    table = list(csv.DictReader(io.StringIO(call("runs", "--csv").stdout)))
    assert [row["folder"] for row in table] == [row["folder"] for row in rows]
    assert [row["score"] for row in table] == ["" if row["score"] is None else str(row["score"]) for row in rows]
    code, _, err = call("runs", "--json", "--csv")
    assert (code, len(err.splitlines())) == (2, 1)


def test_runs_are_chosen_by_their_values(call, tmp_path):
    for seed, scale in enumerate((0.1, 0.5, 0.5)):
        make_run(tmp_path / "outputs", seed=seed, config={"bonus.scale": scale})
    assert len(call("runs", "--where", "bonus.scale=0.5").stdout.splitlines()) == 3
    rows = json.loads(call("runs", "--json", "--where", "bonus.scale=0.5", "seed=1").stdout)
    assert [row["seed"] for row in rows] == [1]
    code, _, err = call("runs", "--where", "bonus.scale=0.2")
    assert (code, err) == (1, "cfn: --where bonus.scale=0.2 matches none of the 3 runs: bonus.scale is 0.1, 0.5\n")


def test_a_sweep_without_planned_runs_is_a_sentence(call, tmp_path):
    with new_sweep(tmp_path / "outputs") as folder:
        record = SweepRecord.create(folder, [], None, "none")
    OmegaConf.save(OmegaConf.create(), record.files.record)
    path = record.files.record.relative_to(tmp_path)
    assert call("runs", path) == (1, "", f"cfn: no run of {path} has been planned yet\n")
