"""Resuming a sweep, within this process."""

import json
import shutil
import subprocess

import pytest
from command import CFN
from folders import make_run
from metrics import rows

from cfn.launch import queue, resuming
from cfn.runs import lock
from cfn.training.loop import Training

KEYS = (
    "agent=random",
    "bonus=count",
    "env.size=7",
    "env.image_size=14",
    "tracker=none",
    "pictures=false",
    "checkpoint.every=50",
)
SMALL = (*KEYS, "steps=120", "eval.every=60")


def stop(folder, state="stopped"):
    """Make a finished run look as if it was stopped at its last checkpoint but one."""
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"state": state}))
    *_, last = sorted((folder / "checkpoints").glob("step_*.json"))
    last.unlink()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a finished sweep of three runs."""
    folder = tmp_path_factory.mktemp("finished")
    done = subprocess.run([CFN, "train", "-m", *SMALL, "seed=0,1,2"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def sweep(finished, tmp_path):
    """A copy of the finished sweep: its record."""
    shutil.copytree(finished / "outputs", tmp_path / "outputs")
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
        ("outputs/typo/seed=3",): "outputs/typo/seed=3: there is no such folder",
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


@pytest.mark.thorough
def test_a_run_that_another_command_trains_is_left_alone(call, sweep, run_folders, monkeypatch):
    """The other command takes the run after this one has looked."""
    stop(run_folders()[0])
    found = resuming.unfinished

    def taken(*arguments):
        answer = found(*arguments)
        held.__enter__()
        return answer

    held = lock.hold(run_folders()[0] / "lock", "a run")
    monkeypatch.setattr("cfn.launch.sweeper.unfinished", taken)
    done = call("resume", sweep)
    held.__exit__(None, None, None)
    assert (done.returncode, done.stderr) == (0, "")
    assert "seed=0 is already running, in process" in done.stdout
    assert ": it is left alone." in done.stdout
    assert json.loads((run_folders()[0] / "summary.json").read_text())["state"] == "stopped"


@pytest.mark.thorough
@pytest.mark.parametrize("begun", [False, True])
def test_a_run_that_another_command_has_finished_is_left_alone(call, sweep, run_folders, monkeypatch, tmp_path, begun):
    """The other command trains the run while this one prepares to do the same."""
    folder, other = run_folders()[0], tmp_path / "other"
    shutil.copytree(folder, other)
    stop(folder)
    if not begun:
        shutil.rmtree(folder)
    prepare, trained = Training.__init__, []

    def slow(training, config):
        prepare(training, config)
        if not trained:
            shutil.copytree(other, folder, dirs_exist_ok=True)

    monkeypatch.setattr(Training, "__init__", slow)
    monkeypatch.setattr(Training, "run", lambda *arguments: trained.append(arguments))
    done = call("resume", sweep)
    assert (done.returncode, done.stderr) == (0, "")
    assert "seed=0 is finished" in done.stdout
    assert not trained


def test_runs_whose_jobs_wait_are_queued_and_the_others_running(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    waits, trains = (make_run(tmp_path / "outputs", seed=seed, state="running") for seed in (0, 1))
    monkeypatch.setattr(resuming, "queued_runs", lambda outputs: {waits, trains})
    with lock.hold(trains / "lock", "a run"):
        found = resuming.unfinished([tmp_path / "outputs"])
    assert found.report == [
        "2 runs: 0 finished, 0 to continue, 0 to start.",
        f"{waits.relative_to(tmp_path)} is queued already and is left alone.",
        f"{trains.relative_to(tmp_path)} is running already and is left alone.",
    ]


def test_jobs_of_all_sweeps_of_a_folder_are_known_to_be_queued(tmp_path, monkeypatch):
    monkeypatch.setattr(queue.shutil, "which", lambda name: name)
    monkeypatch.setattr(queue, "states", lambda jobs: {"7_0": "RUNNING", "8_1": "PENDING"})
    first, second = (tmp_path / "sweeps" / name / "jobs" for name in ("then", "now"))
    queue.remember(first, {"7_0": tmp_path / "a", "7_1": tmp_path / "b"})
    queue.remember(second, {"8_0": tmp_path / "c", "8_1": tmp_path / "d"})
    assert queue.queued_runs(tmp_path) == {tmp_path / "a", tmp_path / "d"}
    assert queue.queued_runs(tmp_path / "elsewhere") == set()
