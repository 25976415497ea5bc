"""Sweeps on a real Slurm: preempted, requeued, out of time, killed; the metrics are those of untouched runs."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import KEYS, SLURM, asked, ended, waited
from metrics import rows

from cfn.checkpoints.store import Checkpoints


def folders(tmp_path, outputs="outputs"):
    return {path.parent.name: path.parent for path in (tmp_path / outputs).rglob("metrics.jsonl")}


def step(folder):
    written = rows(folder) if (folder / "metrics.jsonl").exists() else []
    return written[-1]["step"] if written else 0


def job_of(task):
    """The process of a task of an array that trains, not that of srun."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words, variables = ((path / name).read_bytes().split(b"\0") for name in ("cmdline", "environ"))
            trains = b"cfn.launch.job" in words and not words[0].endswith(b"srun")
            if trains and f"SLURM_ARRAY_TASK_ID={task}".encode() in variables:
                return int(path.name)
    return None


def logs(tmp_path):
    return {path.parent.name.partition("_")[2]: path.read_text() for path in tmp_path.rglob("*_log.out")}


def running():
    """The tasks of arrays that run now."""
    tasks = asked("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%i", "--partition=main").split()
    return {task.partition("_")[2] for task in tasks}


def set_node(state):
    subprocess.run(["scontrol", "update", "nodename=localhost", f"state={state}", "reason=test"], check=True)


def test_preempted_requeued_out_of_time_and_killed_runs_end_as_if_untouched(command, tmp_path):
    keys = (*KEYS, "steps=2500", "seed=0,1,2,3")
    sweep = command("train", "-m", *SLURM, "hydra.launcher.timeout_min=60", "hydra.launcher.signal_delay_s=5", *keys)
    waited(lambda: sum(step(folder) > 100 for folder in folders(tmp_path).values()) == 2, 300, "two runs that train")
    array = asked("squeue", "--noheader", "--format=%F", "--partition=main").split()[0]

    urgent = command("sbatch", "--partition=urgent", "--wrap=sleep 2", "--output=/dev/null", "--mem=100")
    assert urgent.wait() == 0
    waited(lambda: any("this job is preempted" in log for log in logs(tmp_path).values()), 120, "a preemption")

    waited(lambda: all(map(job_of, running())) and len(running()) == 2, 180, "two running jobs")
    by_hand, killed = sorted(running())
    os.kill(job_of(killed), signal.SIGKILL)
    subprocess.run(["scontrol", "requeue", f"{array}_{by_hand}"], check=True)
    waited(lambda: all(map(job_of, running())) and len(running()) == 2, 180, "two running jobs")

    late = max(running())
    stops = logs(tmp_path)[late].count("SIGUSR2")
    subprocess.run(["scontrol", "update", f"jobid={array}_{late}", "timelimit=1"], check=True)
    waited(lambda: logs(tmp_path)[late].count("SIGUSR2") > stops, 90, "the time limit")

    code, said = ended(sweep)
    assert code == 0, said
    assert "4 of 4 runs done" in said
    assert "Killed" in logs(tmp_path)[killed]
    assert "DUE TO JOB REQUEUE" in logs(tmp_path)[by_hand]
    plain = command("train", "-m", "hydra/launcher=slurm_local", *keys, "outputs=reference")
    assert ended(plain)[0] == 0
    assert folders(tmp_path).keys() == folders(tmp_path, "reference").keys() == {f"seed={i}" for i in range(4)}
    for name, folder in folders(tmp_path).items():
        assert rows(folder) == rows(folders(tmp_path, "reference")[name]), name


def test_a_sweep_is_resumed_after_its_command_was_killed_and_its_node_was_down(command, tmp_path):
    sweep = command("train", "-m", *SLURM, *KEYS, "steps=4000", "seed=0,1,2")
    waited(lambda: len(folders(tmp_path)) == 2 and all(map(step, folders(tmp_path).values())), 300, "two runs")
    sweep.send_signal(signal.SIGINT)
    code, said = ended(sweep)
    assert code == 130
    (record,) = (tmp_path / "outputs" / "sweeps").glob("*.yaml")
    assert f"cfn resume outputs/sweeps/{record.stem} continues what is left" in said
    assert len(running()) == 2, "the jobs continue"

    code, said = ended(command("resume", str(record), *SLURM, "--trust", "patient"))
    assert code == 0, said
    assert "0 to continue, 0 to start." in said
    assert "is queued already and is left alone." in said

    set_node("drain")  # or it would be back at once, before Slurm has cleaned up
    set_node("down")
    waited(lambda: not running() and not asked("pgrep", "slurmstepd"), 60, "the node to be down")
    set_node("resume")
    waited(lambda: len(running()) == 2, 240, "the jobs to come back")
    resumed = lambda: ["Resumed at step" in path.read_text() for path in tmp_path.rglob("train.log")]  # noqa: E731
    waited(lambda: any(resumed()), 240, "a resumed run")

    array = asked("squeue", "--noheader", "--format=%F").split()[0]
    subprocess.run(["scancel", array], check=True)
    waited(lambda: not asked("squeue", "--noheader"), 60, "an empty queue")
    listed = ended(command("runs"))[1]
    assert sum(listed.count(state) for state in ("stopped", "killed", "not started")) == 3

    code, said = ended(command("resume", str(record), *SLURM, "--trust", "patient"))
    assert code == 0, said
    assert "3 runs: 0 finished, " in said
    assert [rows(folder)[-1]["step"] for folder in folders(tmp_path).values()] == [4000] * 3
    code, said = ended(command("resume", "outputs"))
    assert (code, said) == (0, "3 runs: 3 finished, 0 to continue, 0 to start.\n")


SCRIPT = Path(__file__).parents[2] / "examples" / "slurm_run.sh"


def test_the_script_without_submitit_survives_its_time_limit_and_a_preemption(command, tmp_path):
    limits = ("--time=1", "--signal=USR1@5", "--cpus-per-task=1", "--output=log.txt", "--mem=1000")
    submitted = command("sbatch", *limits, str(SCRIPT), "mine/seed=0", *KEYS, "steps=1500")
    assert submitted.wait() == 0
    folder = tmp_path / "mine" / "seed=0"
    waited(lambda: folder.exists() and step(folder) > 300, 300, "a run that trains")
    urgent = command("sbatch", "--partition=urgent", "--exclusive", "--wrap=sleep 2", "--output=/dev/null", "--mem=100")
    assert urgent.wait() == 0
    waited(lambda: (folder / "train.log").read_text().count("Resumed at step") >= 1, 240, "a resumed run")
    waited(lambda: step(folder) == 1500 and not asked("squeue", "--noheader"), 400, "the end of the run")
    whole = command("train", *KEYS, "steps=1500", "hydra.run.dir=whole")
    assert ended(whole)[0] == 0
    assert rows(folder) == rows(tmp_path / "whole")
    assert Checkpoints(folder / "checkpoints").latest().step == 1500


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (
            "partition=nosuch",
            "Slurm refuses the jobs: Invalid partition name specified: check hydra.launcher.partition",
        ),
        ("mem_gb=0.001", "hydra.launcher.mem_gb=0.001: the replay buffers of a run can grow to "),
        ("mem_gb=lots", "hydra.launcher.mem_gb=lots: should be a number of GiB, or auto"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence(command, tmp_path, key, sentence):
    code, said = ended(command("train", "-m", *SLURM, *KEYS, "steps=100000", "seed=0,1", f"hydra.launcher.{key}"))
    assert code == 1
    assert f"cfn: {sentence}" in said
    assert "Traceback" not in said
    assert not folders(tmp_path)
