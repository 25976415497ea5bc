"""A Slurm to test on: the one that is there, or one that is started for the tests. Without any, they are skipped."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from command import CFN

CLUSTER = Path(__file__).with_name("cluster")
KEYS = (
    "env=gym", "env.id=patient:patient-v0", "agent=rainbow", "agent.min_size=40", "agent.batch_size=8",
    "agent.hidden=[16]", "agent.update_period=4", "bonus=cfn", "bonus.min_size=20", "bonus.batch_size=8",
    "bonus.hidden=[16]", "bonus.update_period=4", "eval.every=1000", "eval.episodes=1", "eval.steps=0",
    "eval.max_steps=50", "checkpoint.every=400", "tracker=none", "threads=1", "device=cpu",
)  # fmt: skip
SLURM = ("hydra/launcher=slurm", "hydra.launcher.cpus_per_task=1", "hydra.launcher.gpus_per_node=0")


def asked(*command):
    """The output of a command of Slurm; empty if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def waited(condition, seconds, what):
    """Wait until a condition holds, and return what it returned."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.2)
    return found


@pytest.fixture(scope="session")
def slurm():
    """A Slurm with the partitions main and urgent."""
    started = False
    if not (shutil.which("sinfo") and asked("sinfo", "--noheader")):
        begun = subprocess.run([CLUSTER, "start"], capture_output=True, text=True) if os.geteuid() == 0 else None
        if begun is None or begun.returncode:
            reason = "only root can" if begun is None else begun.stderr.strip()[-300:]
            pytest.skip(f"Slurm cannot be installed or started here: {reason}")
        started = True
    if set(asked("sinfo", "--noheader", "--format=%R").split()) != {"main", "urgent"}:
        pytest.skip("this Slurm has other partitions than main and urgent")
    yield
    if started:
        subprocess.run([CLUSTER, "stop"], check=True)


@pytest.fixture
def command(slurm, tmp_path):
    """Start a command in the test's folder: `command("train", "-m", ...)` returns the process."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PATH": f"{CFN.parent}{os.pathsep}{os.environ['PATH']}"}
    processes = []

    def start(*words):
        words = [str(CFN), *words] if words[0] in ("train", "resume", "runs") else list(words)
        log = (tmp_path / f"command-{len(processes)}.txt").open("w+")
        processes.append(subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=log, stderr=log))
        processes[-1].log = log
        return processes[-1]

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.log.close()
    for job in asked("squeue", "--noheader", "--format=%A").split():
        subprocess.run(["scancel", job])
    waited(lambda: not asked("squeue", "--noheader"), 120, "an empty queue")


def ended(process, seconds=900):
    """Wait for a command; return its exit code and its output."""
    code = process.wait(timeout=seconds)
    process.log.seek(0)
    return code, process.log.read()
