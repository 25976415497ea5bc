"""The parts of the Slurm launcher that need no Slurm; the others are in tests/slurm."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from folders import make_run
from hydra_plugins.hydra_submitit_launcher.submitit_launcher import BaseSubmititLauncher

from cfn.errors import UsageError
from cfn.launch import queue
from cfn.launch.batch import refusal, requeue_if_killed
from cfn.launch.slurm import LocalLauncher
from cfn.launch.threads import threads_per_run, workers_of
from cfn.training.signals import StopRequest

SMALL = ("agent=random", "bonus=count", "env.size=7", "env.image_size=14", "steps=60", "tracker=none", "pictures=false")


@pytest.mark.parametrize(
    ("codes", "requeued"),
    [
        ((0,), 0),
        ((1,), 0),
        ((143,), 0),
        ((255,), 0),
        ((137,), 1),
        ((137, 255, 137, 255, 137), 3),  # 255: preempted, which is requeued elsewhere and does not count
        ((137, 137, 137, 137), 3),
        ((140, 140, 140, 140, 140), 5),
    ],
)
def test_only_a_job_that_was_killed_is_requeued_by_its_script(tmp_path, codes, requeued):
    """`scontrol` is a function of the shell here: the script is real."""
    folder = tmp_path / "a user's jobs"
    folder.mkdir()
    array = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2", "SLURM_JOB_ID": "7"}
    said = ""
    for code in codes:
        script = "\n".join(["scontrol() { echo $*; }", f"(exit {code})", *requeue_if_killed(3, folder)])
        done = subprocess.run(["bash", "-c", script], env={**os.environ, **array}, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (code, "")
        said += done.stdout
    assert said == requeued * "requeue 7_2\n"


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            "sbatch: error: invalid partition: x\nsbatch: error: Batch job submission failed: Invalid partition",
            "Invalid partition: check hydra.launcher.partition",
        ),
        ("sbatch: error: Memory specification can not be satisfied", "check hydra.launcher.mem_gb"),
        ("sbatch: error: Invalid feature specification", "check hydra.launcher.constraint"),
        (
            "sbatch: error: Invalid generic resource (gres) specification",
            "check hydra.launcher.gpus_per_node (0: no GPU) and hydra.launcher.gres",
        ),
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
    command = [sys.executable, "-m", "cfn.launch.slurm_entry", "-u", "-m", "mine", "a", "b"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == f"{sorted([signal.SIGUSR2, signal.SIGTERM])} ['a', 'b']\n"


def test_a_signal_before_the_run_trains_is_obeyed_when_it_does(monkeypatch):
    """An environment that replays its episode must not see submitit's SystemExit, which looks like its own fault."""
    events = []

    def requeue(number, frame):  # submitit's handler
        events.append("requeued")
        raise SystemExit(-1)

    def run(launcher, *arguments):
        signal.raise_signal(signal.SIGUSR2)
        events.append("restored")
        with StopRequest() as request:
            signal.raise_signal(signal.SIGTERM)  # follows as a matter of course
            events.append(str(request.reason))
        raise request.signal

    monkeypatch.setattr(BaseSubmititLauncher, "__call__", run)
    before = signal.signal(signal.SIGUSR2, requeue)
    try:
        with pytest.raises(SystemExit):
            LocalLauncher()()
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert events == ["restored", "SIGUSR2", "requeued"]


def test_a_job_has_ended_if_the_queue_lacks_it_twice(monkeypatch):
    answers = [{"1_0": "RUNNING", "1_1": "PENDING"}, None, {"1_0": "RUNNING"}, {"1_0": "RUNNING"}]
    monkeypatch.setattr(queue, "states", lambda jobs: answers.pop(0))
    monkeypatch.setattr(queue, "ASK_SECONDS", 0.0)
    watched = queue.Queue()
    assert [watched.ended({"1_0", "1_1"}) for _ in range(4)] == [set(), set(), set(), {"1_1"}]


@pytest.mark.parametrize(("silent", "state"), [(0, "RUNNING"), (2, "RUNNING"), (3, None)])
def test_a_busy_slurm_is_asked_again(monkeypatch, silent, state):
    answers = [*silent * [None], {"1_0": "RUNNING"}]
    monkeypatch.setattr(queue, "states", lambda jobs: answers.pop(0))
    monkeypatch.setattr(queue, "RETRY_SECONDS", 0.0)
    assert queue.Queue().state("1_0") == state


def test_a_machine_without_slurm_is_told(call, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("train", "-m", *SMALL, "hydra/launcher=slurm", "seed=0,1")
    assert done.returncode == 1
    assert done.stderr == (
        "cfn: hydra/launcher=slurm: there is no Slurm here (no command sbatch): "
        "use hydra/launcher=joblib or hydra/launcher=slurm_local on this machine\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("-m", "hydra/launcher=slurm", "hydra.launcher.timeout_min=1d"),
            "hydra.launcher.timeout_min=1d: should be a whole number of at least 1",
        ),
        (
            ("-m", "hydra/launcher=slurm_local", "hydra.launcher.gpus_per_node=-1"),
            "hydra.launcher.gpus_per_node=-1: should be a whole number of at least 0",
        ),
        (
            ("-m", "hydra/launcher=slurm", "hydra.launcher.additional_parameters={mail-type: FAIL}"),
            "hydra/launcher=slurm: there is no Slurm here",  # the keys are those of sbatch
        ),
        (("hydra/launcher=slurm",), "hydra/launcher=slurm is for sweeps only: add -m, also for a single run"),
        (("hydra/sweeper=optuna",), "hydra/sweeper=optuna is for sweeps only: add -m"),
        (("bonus.scale=choice(1,2)",), "bonus.scale=choice(1,2): a range or a choice is a sweep: add -m"),
    ],
)
def test_a_command_that_cannot_be_is_one_sentence(call, monkeypatch, tmp_path, words, sentence):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("train", *SMALL, *words)
    assert done.returncode == 1
    assert done.stderr.startswith(f"cfn: {sentence}")
    assert not list(tmp_path.glob("outputs/*"))


@pytest.mark.parametrize(
    ("state", "text", "reason"),
    [
        ("stopped", "", "its job was cancelled"),
        ("running", "", "its job ended without a result (cancelled, killed, or its node failed)"),
        (
            "running",
            "OSError: No space left on device",
            "its disk is full: free some space, then cfn resume sweeps/now continues",
        ),
    ],
)
def test_a_job_without_a_result_is_reported_with_its_reason_and_log(tmp_path, monkeypatch, capsys, state, text, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.out").write_text(text)
    job = SimpleNamespace(paths=SimpleNamespace(result_pickle=tmp_path / "none.pkl", stdout=tmp_path / "log.out"))
    run = make_run(tmp_path, state=state)
    for overrides, name in ((["seed=0"], "seed=0"), ([], run.relative_to(tmp_path))):  # a continued run has none
        launcher = LocalLauncher()
        launcher.log_to(tmp_path / "sweeps" / "now" / "jobs")
        done = launcher._result(job, [*overrides, f"hydra.sweep.subdir='{run}'"])
        assert done.status.name == "FAILED"
        assert capsys.readouterr().err == f"cfn: the run {name} failed: {reason}; its log: log.out\n"


@pytest.mark.parametrize(
    ("launcher", "n_jobs", "runs", "threads"),
    [("joblib", -1, 2, 4), ("joblib", -1, 99, 1), ("joblib", 4, 9, 2), ("joblib", None, 9, 8), ("joblib", -5, 9, 2),
     ("joblib", -99, 9, 8),
     ("slurm_local", None, 3, 2), ("slurm_local", None, 0, 8), ("slurm", None, 3, None), ("basic", None, 3, None)],
)  # fmt: skip
def test_parallel_runs_share_the_cores(monkeypatch, launcher, n_jobs, runs, threads):
    from omegaconf import OmegaConf

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(8))
    hydra = {"runtime": {"choices": {"hydra/launcher": launcher}}, "launcher": {"n_jobs": n_jobs}}
    assert threads_per_run(OmegaConf.create(hydra), runs) == threads


@pytest.mark.parametrize("n_jobs", ["abc", 0, 1.5, True])
def test_what_is_no_number_of_runs_is_a_sentence(n_jobs):
    with pytest.raises(UsageError, match=rf"^hydra.launcher.n_jobs={n_jobs}: should be a number of runs, or -1"):
        workers_of(n_jobs, 8)


@pytest.mark.thorough
def test_the_same_path_without_slurm(cfn, run_folders):
    done = cfn("train", "-m", *SMALL, "hydra/launcher=slurm_local", "env.size=5,7")
    assert done.returncode == 1
    assert done.stderr.count("failed: env.size: an image of 14 pixels") == 1
    assert "1 of 2 runs done, 0 running, 0 queued, 1 failed" in done.stdout
    assert [folder.name for folder in run_folders()] == ["seed=0"]
