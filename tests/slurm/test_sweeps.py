"""Sweeps on a real Slurm: preempted, requeued, out of time, killed; the metrics are those of untouched runs."""

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest
from conftest import KEYS, SLURM, asked, ended, hurry, read, said, told, waited
from metrics import rows

from cfn.checkpoints.store import Checkpoints

SCRIPT = Path(__file__).parents[2] / "examples" / "slurm_run.sh"


def folders(tmp_path):
    return {path.parent.name: path.parent for path in (tmp_path / "outputs").rglob("metrics.jsonl")}


def metrics(tmp_path):
    return {name: rows(folder) for name, folder in folders(tmp_path).items()}


def step(folder):
    """The last step in the metrics of a run that may be writing to them."""
    whole = read(folder / "metrics.jsonl").rpartition("\n")[0].splitlines()
    return json.loads(whole[-1])["step"] if whole else 0


def all_train(tmp_path, number):
    """Whether as many runs as named train, beyond their first checkpoint."""
    return sum(step(folder) > 60 for folder in folders(tmp_path).values()) == number


def processes():
    """The folder in /proc of every process, with its name, words and variables."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words, variables = ((path / name).read_bytes().split(b"\0") for name in ("cmdline", "environ"))
            yield path, (path / "comm").read_text().strip(), words, variables


def job_of(task):
    """The process of a task of an array that trains, not that of srun."""
    for path, _, words, variables in processes():
        trains = b"cfn.launch.slurm_entry" in words and not words[0].endswith(b"srun")
        if trains and f"SLURM_ARRAY_TASK_ID={task}".encode() in variables:
            return int(path.name)
    return None


def log(tmp_path, task):
    """The log of a task of an array; empty before it begins."""
    return "".join(read(path) for path in tmp_path.rglob("*_log.out") if path.parent.name.endswith(f"_{task}"))


def train_logs(tmp_path):
    return [read(path) for path in tmp_path.rglob("train.log")]


def running():
    """The tasks of arrays that run now."""
    tasks = asked("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%i", "--partition=main").split()
    return {task.partition("_")[2] for task in tasks}


def training():
    """The two tasks that run and the processes that train in them, in order; empty unless Python runs in both."""
    tasks = [(task, job_of(task)) for task in sorted(running())]
    return tasks if len(tasks) == 2 and all(process for _, process in tasks) else []


def set_node(state):
    told("scontrol", "update", "nodename=localhost", f"state={state}", "reason=test")


def set_limit(job, minutes):
    told("scontrol", "update", f"jobid={job}", f"timelimit={minutes}")


def soon(job):
    """The time limit in whole minutes that leaves a running job 90 to 150 s.

    Slurm looks at time limits every 30 s. It sends the warning of 120 s at the next look, and leaves time to obey it.
    """
    clock = asked("squeue", "--noheader", f"--jobs={job}", "--format=%M").replace("-", ":").split(":")
    seconds = sum(int(part) * unit for part, unit in zip(reversed(clock), (1, 60, 3600, 86400), strict=False))
    return (seconds + 90) // 60 + 1


def preempt(command):
    """Take all CPUs until every job has left the node, so that no process of an earlier start is left."""
    urgent = ("--partition=urgent", "--exclusive", "--wrap=sleep 3600", "--output=/dev/null", "--mem=100")
    code, job = ended(command("sbatch", "--parsable", *urgent))
    assert code == 0, job
    waited(lambda: asked("squeue", "--noheader", "--partition=urgent", "--states=RUNNING"), "the urgent job to run")
    told("scancel", job.strip())


def array():
    """The number of the array in the queue."""
    return waited(lambda: asked("squeue", "--noheader", "--format=%F", "--partition=main"), "a job").split()[0]


def test_preempted_requeued_out_of_time_and_killed_runs_end_as_if_untouched(command, tmp_path, untouched):
    sweep = command("train", "-m", *SLURM, *KEYS, "seed=0,1,2,3")
    waited(lambda: all_train(tmp_path, 2), "two runs that train")
    before = waited(training, "two running jobs")
    preempt(command)
    assert all("this job is preempted" in log(tmp_path, task) for task, _ in before)

    (by_hand, _), (killed, process) = waited(training, "two running jobs")
    os.kill(process, signal.SIGKILL)
    told("scontrol", "requeue", f"{array()}_{by_hand}")
    waited(lambda: "DUE TO JOB REQUEUE" in log(tmp_path, by_hand), "a job requeued by hand")
    waited(lambda: "Killed" in log(tmp_path, killed), "a killed job")

    late, _ = waited(training, "two running jobs")[-1]
    stops = log(tmp_path, late).count("SIGUSR2")
    set_limit(f"{array()}_{late}", soon(f"{array()}_{late}"))
    waited(lambda: log(tmp_path, late).count("SIGUSR2") > stops, "the time limit")
    set_limit(f"{array()}_{late}", 600)

    hurry(tmp_path)
    code, text = ended(sweep)
    assert code == 0, text
    assert "4 of 4 runs done" in text
    assert metrics(tmp_path) == untouched


def test_a_sweep_is_resumed_after_its_command_was_stopped_and_its_node_was_down(command, tmp_path, untouched):
    sweep = command("train", "-m", *SLURM, *KEYS, "seed=0,1,2")
    waited(lambda: all_train(tmp_path, 2), "two runs that train")
    sweep.send_signal(signal.SIGINT)
    code, text = ended(sweep)
    assert code == 130
    (record,) = (tmp_path / "outputs" / "sweeps").glob("*.yaml")
    assert f"scancel {array()} cancels them" in text
    assert f"continues what is left:\ncfn resume outputs/sweeps/{record.stem} {' '.join(SLURM)}\n" in text
    assert len(running()) == 2, "the jobs continue"

    code, text = ended(command("resume", str(record), *SLURM, "--trust", "patient"))
    assert code == 0, text
    assert "0 to continue, 0 to start." in text
    assert "is queued already and is left alone." in text

    set_node("drain")  # or it would be back at once, before Slurm has cleaned up
    set_node("down")
    steps = lambda: [name for _, name, _, _ in processes() if name == "slurmstepd"]  # noqa: E731
    waited(lambda: not running() and not steps(), "the node to be down")
    set_node("resume")
    waited(lambda: any("Resumed at step" in text for text in train_logs(tmp_path)), "a resumed run")

    told("scancel", array())
    waited(lambda: not asked("squeue", "--noheader"), "an empty queue")
    listed = ended(command("runs"))[1]
    assert sum(listed.count(state) for state in ("stopped", "killed", "not started")) == 3

    hurry(tmp_path)
    code, text = ended(command("resume", str(record), *SLURM, "--trust", "patient"))
    assert code == 0, text
    assert "3 runs: 0 finished, " in text
    assert metrics(tmp_path) == {name: untouched[name] for name in ("seed=0", "seed=1", "seed=2")}
    code, text = ended(command("resume", "outputs"))
    assert (code, text) == (0, "3 runs: 3 finished, 0 to continue, 0 to start.\n")


def test_the_script_without_submitit_survives_a_preemption_and_its_time_limit(command, tmp_path, untouched):
    limits = ("--time=600", "--cpus-per-task=1", "--output=log.txt", "--mem=1000")
    assert ended(command("sbatch", *limits, str(SCRIPT), "mine/seed=0", *KEYS, "seed=0"))[0] == 0
    folder = tmp_path / "mine" / "seed=0"
    text = lambda: read(folder / "train.log")  # noqa: E731
    waited(lambda: folder.exists() and step(folder) > 60, "a run that trains")
    preempt(command)
    waited(lambda: text().count("Resumed at step") == 1, "a run resumed after its preemption")

    job = array()
    set_limit(job, soon(job))
    waited(lambda: text().count("SIGUSR1: stopping") == 2, "the time limit")
    set_limit(job, 600)
    waited(lambda: text().count("Resumed at step") == 2, "a run resumed after its time limit")

    hurry(tmp_path)
    waited(lambda: not asked("squeue", "--noheader"), "the end of the run")
    assert rows(folder) == untouched["seed=0"]
    assert Checkpoints(folder / "checkpoints").latest().step == 3000


def test_a_preemption_by_sigterm_alone_is_survived(command, tmp_path, untouched):
    """Clusters without `preempt_send_user_signal` send SIGTERM, which a cancelled job receives, too."""
    command("train", "-m", *SLURM, "+hydra.launcher.additional_parameters.signal=TERM@5", *KEYS, "seed=1")
    limits = ("--signal=TERM@5", "--time=600", "--cpus-per-task=1", "--output=log.txt", "--mem=1000")
    assert ended(command("sbatch", *limits, str(SCRIPT), "outputs/seed=0", *KEYS, "seed=0"))[0] == 0
    waited(lambda: all_train(tmp_path, 2), "two runs that train")
    preempt(command)
    events = ("SIGTERM: stopping", "Resumed at step")
    waited(lambda: all(event in text for text in train_logs(tmp_path) for event in events), "resumed runs")
    hurry(tmp_path)
    waited(lambda: not asked("squeue", "--noheader"), "the end of the runs")
    assert metrics(tmp_path) == {name: untouched[name] for name in ("seed=0", "seed=1")}


def test_two_commands_share_a_sweep_whose_command_was_killed_and_draw_its_figure(command, tmp_path):
    """Jobs are held until both commands have looked at the queue; each run has one job."""
    short = ("steps=60", "eval.every=30", "suite.rainbow.min_size=20", "suite.cfn.channels=[2,2,2]", "tracker=none")
    experiment = ("experiment=gridworld_curves", "preset=mini", "bonus=cfn,none", "seed=0", *short)
    held = (*SLURM, "+hydra.launcher.additional_parameters.hold=true")
    sweep = command("train", "-m", *held, *experiment)
    waited(lambda: asked("squeue", "--noheader") or sweep.poll() is not None, "jobs that wait")
    assert sweep.poll() is None, said(sweep)
    sweep.kill()
    told("scancel", array())
    waited(lambda: not asked("squeue", "--noheader"), "an empty queue")

    (record,) = (tmp_path / "outputs" / "sweeps").glob("*.yaml")
    both = [command("resume", str(record), *held) for _ in range(2)]
    sentences = ("Submitted 2 runs as Slurm job", "queued already and is left alone.")
    waited(lambda: all(any(sentence in said(one) for sentence in sentences) for one in both), "two commands that wait")
    told("scontrol", "release", array())
    text = ""
    for process in both:
        code, one = ended(process)
        assert code == 0, one
        text += one
    assert [text.count(sentence) for sentence in sentences] == [1, 2], text
    assert len(folders(tmp_path).keys()) == 1, "one seed"
    assert [text.count("finished after") for text in train_logs(tmp_path)] == [1, 1]
    assert f"The experiment's figure: outputs/sweeps/{record.stem}.png" in text
    assert record.with_suffix(".png").stat().st_size > 1000


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
    code, text = ended(command("train", "-m", *SLURM, *KEYS, "steps=100000", "seed=0,1", f"hydra.launcher.{key}"))
    assert code == 1
    assert text.startswith(f"cfn: {sentence}")
    assert len(text.splitlines()) == 1
    assert not folders(tmp_path)
