"""Resuming a sweep, within this process."""

import json
import shutil

import pytest
from metrics import rows

KEYS = ("agent=random", "bonus=count", "env.size=7", "env.image_size=14", "tracker=none", "checkpoint.every=50")
SMALL = (*KEYS, "steps=120", "eval.every=60")


def stop(folder, state="stopped"):
    """Make a finished run look as if it was stopped at its last checkpoint but one."""
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"state": state}))
    *_, last = sorted((folder / "checkpoints").glob("step_*.json"))
    last.unlink()


@pytest.fixture
def sweep(call, tmp_path):
    """A finished sweep of three runs: its record."""
    assert call("train", "-m", *SMALL, "seed=0,1,2").returncode == 0
    (record,) = (tmp_path / "outputs" / "sweeps").glob("*.yaml")
    return record


@pytest.mark.thorough
def test_what_is_left_of_a_sweep_is_continued_or_started(call, sweep, run_folders):
    before = [rows(folder) for folder in run_folders()]
    stopped, never, _ = run_folders()
    stop(stopped)
    shutil.rmtree(never)
    listed = call("runs").stdout.splitlines()
    assert [line.split()[3:6] for line in listed if "not started" in line] == [["1", "not", "started"]]
    done = call("resume", sweep)
    assert done.returncode == 0, done.stderr
    assert "3 runs: 1 finished, 1 to continue, 1 to start." in done.stdout
    assert "Resumed at step 100." in done.stdout
    assert [rows(folder) for folder in run_folders()] == before, "the same runs, in the same folders"
    assert call("resume", "outputs").stdout == "3 runs: 3 finished, 0 to continue, 0 to start.\n"


@pytest.mark.thorough
def test_a_folder_of_runs_can_be_resumed_and_a_sweep_extended(call, sweep, run_folders, tmp_path):
    shutil.rmtree(tmp_path / "outputs" / "sweeps")
    stop(run_folders()[0], "failed")
    done = call("resume", "outputs/gridworld_small")
    assert done.returncode == 0, done.stderr
    assert "3 runs: 2 finished, 1 to continue, 0 to start." in done.stdout
    done = call("resume", "outputs", "steps=180")
    assert done.returncode == 0, done.stderr
    assert [rows(folder)[-1]["step"] for folder in run_folders()] == [180] * 3


@pytest.mark.thorough
def test_a_run_that_failed_before_it_began_is_listed_and_tried_again(call, tmp_path):
    done = call("train", "-m", *KEYS, "steps=60", "env.size=5,7")
    assert done.returncode == 1
    (line,) = [line for line in call("runs").stdout.splitlines() if "failed to start" in line]
    assert "env.size: an image of 14 pixels" in line
    (record,) = (tmp_path / "outputs" / "sweeps").glob("*.yaml")
    done = call("resume", record)
    assert done.returncode == 1
    assert "2 runs: 1 finished, 0 to continue, 1 to start." in done.stdout
    assert done.stderr.splitlines()[-1] == "cfn: 1 of 1 runs of the sweep failed; the reasons are above"


@pytest.mark.thorough
def test_a_strangers_record_imports_nothing(call, sweep, run_folders):
    shutil.rmtree(run_folders()[0])
    plan = sweep.with_suffix("") / "runs.json"
    content = json.loads(plan.read_text())
    content["runs"][0]["overrides"] += ["bonus._target_=antigravity.Bonus"]
    plan.write_text(json.dumps(content))
    done = call("resume", sweep)
    assert done.returncode == 1
    assert "bonus._target_=antigravity.Bonus is not part of this package: if you trust it, add --trust" in done.stderr


def test_what_cannot_be_resumed_is_one_sentence(call, tmp_path):
    (tmp_path / "outputs" / "sweeps" / "then").mkdir(parents=True)
    for arguments, sentence in {
        ("nosuch/sweeps/a.yaml", "hydra/launcher=basic"): "nosuch/sweeps/a.yaml: there is no such file or folder",
        ("outputs/sweeps/then",): "outputs/sweeps/then has no record of its runs (runs.json)",
        ("outputs",): "outputs holds no run",
        ("outputs", "bonus.scale=3"): "bonus.scale cannot be changed in a started run",
        ("seed=3",): "name a run folder, or the record of a sweep",
    }.items():
        done = call("resume", *arguments)
        assert done.returncode in (1, 2)
        assert done.stderr.startswith(f"cfn: {sentence}")
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.thorough
def test_two_runs_never_share_a_folder(call, run_folders):
    assert call("train", "-m", *SMALL, "seed=0,0").returncode == 0
    assert len(run_folders()) == 2
    done = call("train", "-m", *SMALL, "seed=0,1", "hydra.sweep.subdir=mine")
    assert done.returncode == 1
    assert "outputs/mine already holds a run" in done.stderr
    assert len(run_folders()) == 3
