"""Runs in parallel processes (`hydra/launcher=joblib`) that a signal stops."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import patient
import pytest
from command import CFN
from metrics import rows

KEYS = (
    "steps=300", "env=gym", "env.id=patient:patient-v0", "agent=rainbow", "agent.min_size=40", "agent.batch_size=8",
    "agent.hidden=[16]", "bonus=cfn", "bonus.min_size=20", "bonus.batch_size=8", "bonus.hidden=[16]", "eval.every=20",
    "eval.episodes=1", "eval.steps=0", "eval.max_steps=10", "checkpoint.every=200", "tracker=none", "pictures=false",
    "device=cpu",
)  # fmt: skip
JOBLIB = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")


@pytest.fixture
def start(tmp_path):
    """Start a command in the test's folder, as a terminal does: in a process group that Ctrl-C reaches."""
    variables = {**os.environ, "PYTHONPATH": str(Path(patient.__file__).parent), "CUDA_VISIBLE_DEVICES": ""}
    started = []

    def command(*words):
        obey = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  # see tests/e2e/test_commands.py
        started.append(
            subprocess.Popen(
                [str(CFN), *words],
                cwd=tmp_path,
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                preexec_fn=obey,
            )
        )
        return started[-1]

    yield command
    for process in started:
        with contextlib.suppress(ProcessLookupError):  # the group has ended
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for_runs(sweep, run_folders):
    """Wait until two runs have written metrics."""
    deadline = time.monotonic() + 120
    while sum(b"\n" in (folder / "metrics.jsonl").read_bytes() for folder in run_folders()) < 2:
        assert time.monotonic() < deadline
        assert sweep.poll() is None, sweep.communicate()
        time.sleep(0.05)


def state(folder):
    return json.loads((folder / "summary.json").read_text())["state"]


@pytest.mark.process
def test_ctrl_c_saves_all_runs_and_a_resume_continues_them(start, tmp_path, run_folders):
    """The workers receive it, too. The third run never begins."""
    sweep = start("train", "-m", *JOBLIB, *KEYS, "seed=0,1,2")
    wait_for_runs(sweep, run_folders)
    os.killpg(sweep.pid, signal.SIGINT)
    output, errors = sweep.communicate(timeout=120)
    assert (sweep.returncode, errors.splitlines()[-1]) == (130, "cfn: stopped"), output + errors
    assert output.startswith("Training 3 runs, 2 at a time; cfn runs --watch lists them.\n"), "nothing of joblib"
    assert "The runs save and stop; press Ctrl-C again to stop them now.\n" in output
    assert "stopping after this step" not in output
    assert [state(folder) for folder in run_folders()] == ["stopped", "stopped"]
    before = {folder: rows(folder) for folder in run_folders()}
    resume = output.splitlines()[output.splitlines().index("What is left is continued by:") + 1]
    (record,) = (tmp_path / "outputs" / "sweeps").glob("*.yaml")
    assert resume == f"cfn resume outputs/sweeps/{record.stem} {' '.join(JOBLIB)}"

    (tmp_path / "hurry").touch()
    output, errors = start(*shlex.split(resume)[1:], "--trust", "patient").communicate(timeout=120)
    assert "3 runs: 0 finished, 2 to continue, 1 to start.\n" in output, errors
    assert "3 of 3 runs done" in output
    folders = run_folders()
    untouched = start("train", "-m", *KEYS, "seed=0,1,2", "hydra.sweep.dir=untouched")
    assert untouched.communicate(timeout=120)[1] == ""
    for folder, other in zip(folders, sorted((tmp_path / "untouched").rglob("seed=?")), strict=True):
        assert ("Resumed at step" in (folder / "train.log").read_text()) == (folder in before)
        assert rows(folder) == rows(other)


@pytest.mark.process
def test_a_signal_to_the_command_alone_stops_its_runs(start, run_folders):
    sweep = start("train", "-m", *JOBLIB, *KEYS, "seed=0,1")
    wait_for_runs(sweep, run_folders)
    os.kill(sweep.pid, signal.SIGTERM)
    _, errors = sweep.communicate(timeout=120)
    assert (sweep.returncode, errors.splitlines()[-1]) == (128 + signal.SIGTERM, "cfn: stopped"), errors
    assert [state(folder) for folder in run_folders()] == ["stopped", "stopped"]


@pytest.mark.process
def test_a_second_ctrl_c_kills_runs_that_cannot_stop(start, run_folders):
    sweep = start("train", "-m", *JOBLIB, *KEYS, "seed=0,1")
    wait_for_runs(sweep, run_folders)
    workers = [int((folder / "lock").read_text().split()[1]) for folder in run_folders()]
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    os.kill(sweep.pid, signal.SIGINT)
    while "The runs save and stop" not in sweep.stdout.readline():
        assert sweep.poll() is None
    os.kill(sweep.pid, signal.SIGINT)
    _, errors = sweep.communicate(timeout=60)
    assert (sweep.returncode, errors.splitlines()[-1]) == (130, "cfn: stopped"), errors
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
