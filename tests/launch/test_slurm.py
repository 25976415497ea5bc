"""The parts of the Slurm launcher that need no Slurm; the others are in tests/slurm."""

import os
import signal
import subprocess
import sys

import pytest

from cfn.launch import queue
from cfn.launch.slurm import refusal, requeue_if_killed
from cfn.launch.threads import threads_per_run

SMALL = ("agent=random", "bonus=count", "env.size=7", "env.image_size=14", "steps=60", "tracker=none")


@pytest.mark.parametrize(
    ("code", "restarts", "requeued"),
    [(0, 0, False), (1, 0, False), (143, 0, False), (255, 0, False), (137, 0, True), (137, 3, False), (140, 9, True)],
)
def test_only_a_job_that_was_killed_is_requeued_by_its_script(code, restarts, requeued):
    """`scontrol` is a function of the shell here: the script is real."""
    script = "\n".join(["scontrol() { echo $*; }", f"(exit {code})", *requeue_if_killed(3)])
    array = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2", "SLURM_JOB_ID": "7"}
    environment = {**os.environ, **array, "SLURM_RESTART_COUNT": str(restarts)}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, "requeue 7_2\n" if requeued else "")


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            "sbatch: error: invalid partition: x\nsbatch: error: Batch job submission failed: Invalid partition",
            "Invalid partition: check hydra.launcher.partition",
        ),
        ("sbatch: error: Memory specification can not be satisfied", "check hydra.launcher.mem_gb"),
        ("sbatch: error: a puzzle", "a puzzle"),
        ("no such\nthing", "no such thing"),
    ],
)
def test_a_refusal_names_the_key(message, sentence):
    assert refusal(message).endswith(sentence)


def test_signals_wait_until_the_job_can_obey_them(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import signal, sys\nprint(sorted(signal.pthread_sigmask(0, [])), sys.argv[1:])\n"
    )
    command = [sys.executable, "-m", "cfn.launch.job", "-u", "-m", "mine", "a", "b"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == f"{sorted([signal.SIGUSR2, signal.SIGTERM])} ['a', 'b']\n"


def test_a_job_has_ended_if_the_queue_lacks_it_twice(monkeypatch):
    answers = [{"1_0": "RUNNING", "1_1": "PENDING"}, None, {"1_0": "RUNNING"}, {"1_0": "RUNNING"}]
    monkeypatch.setattr(queue, "states", lambda jobs: answers.pop(0))
    monkeypatch.setattr(queue, "ASK_SECONDS", 0.0)
    watched = queue.Queue()
    assert [watched.ended({"1_0", "1_1"}) for _ in range(4)] == [set(), set(), set(), {"1_1"}]


def test_a_machine_without_slurm_is_told(call, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("train", "-m", *SMALL, "hydra/launcher=slurm", "seed=0,1")
    assert done.returncode == 1
    assert done.stderr == (
        "cfn: hydra/launcher=slurm: there is no Slurm here (no command sbatch): "
        "use hydra/launcher=joblib or hydra/launcher=slurm_local on this machine\n"
    )


@pytest.mark.parametrize(
    ("launcher", "n_jobs", "runs", "threads"),
    [("joblib", -1, 2, 4), ("joblib", -1, 99, 1), ("joblib", 4, 9, 2), ("joblib", None, 9, 8), ("joblib", -5, 9, 2),
     ("slurm_local", None, 3, 2), ("slurm", None, 3, None), ("basic", None, 3, None)],
)  # fmt: skip
def test_parallel_runs_share_the_cores(monkeypatch, launcher, n_jobs, runs, threads):
    from omegaconf import OmegaConf

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(8))
    hydra = {"runtime": {"choices": {"hydra/launcher": launcher}}, "launcher": {"n_jobs": n_jobs}}
    assert threads_per_run(OmegaConf.create(hydra), runs) == threads


@pytest.mark.thorough
def test_the_same_path_without_slurm(cfn, run_folders):
    done = cfn("train", "-m", *SMALL, "hydra/launcher=slurm_local", "env.size=5,7")
    assert done.returncode == 1
    assert done.stderr.count("failed: env.size: an image of 14 pixels") == 1
    assert "1 of 2 runs done, 0 running, 0 queued, 1 failed" in done.stdout
    assert [folder.name for folder in run_folders()] == ["seed=0"]
