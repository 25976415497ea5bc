"""A Slurm to test on: the one that is there, or one that is started for the tests. Without any, they are skipped."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command import CFN
from metrics import rows

CLUSTER = Path(__file__).with_name("cluster")
CONF = "/var/spool/slurm-tests/slurm.conf"
"""Where the started Slurm has its configuration."""
START_SECONDS = 900
"""Seconds until Slurm, which may have to be downloaded, must run."""
KEYS = (
    "steps=3000", "env=gym", "env.id=patient:patient-v0", "agent=rainbow", "agent.min_size=40", "agent.batch_size=8",
    "agent.hidden=[16]", "agent.update_period=4", "bonus=cfn", "bonus.min_size=20", "bonus.batch_size=8",
    "bonus.hidden=[16]", "bonus.update_period=4", "eval.every=1000", "eval.episodes=1", "eval.steps=0",
    "eval.max_steps=50", "checkpoint.every=50", "tracker=none", "pictures=false", "threads=1", "device=cpu",
)  # fmt: skip
SLURM = (
    "hydra/launcher=slurm", "hydra.launcher.cpus_per_task=1", "hydra.launcher.gpus_per_node=0",
    "hydra.launcher.array_parallelism=2", "hydra.launcher.timeout_min=600",
)  # fmt: skip
"""Two jobs at a time, on a cluster of any size."""
PATIENCE = 600
"""Seconds to wait for an event. All waits of a test together are shorter than a run of the patient environment."""


def asked(*command):
    """The output of a command of Slurm. A controller that is too busy to answer is asked again."""
    for _ in range(20):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0 or "Invalid job id" in done.stderr:  # squeue has forgotten the job
            return done.stdout.strip()
        time.sleep(3)
    raise AssertionError(f"{command}: {done.stderr}")


def told(*command):
    """Run a command of Slurm until it succeeds: a job that is just ending cannot be changed before it has ended."""
    waited(lambda: subprocess.run(command, capture_output=True).returncode == 0, " ".join(command))


def waited(condition, what):
    """Wait until a condition holds, and return what it returned."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {PATIENCE} s for {what}"
        time.sleep(0.2)
    return found


def read(path):
    """The text of a file that may not exist yet, and that may be written to at this moment."""
    return path.read_text(errors="replace") if path.exists() else ""


def empty_queue():
    """Cancel all jobs until none is left: one that was being requeued may come back."""

    def cancelled():
        for job in asked("squeue", "--noheader", "--format=%A").split():
            subprocess.run(["scancel", job], capture_output=True)
        return not asked("squeue", "--noheader")

    waited(cancelled, "an empty queue")


def search_path():
    """Where Python finds the patient environment, and what the tests themselves are run with."""
    return os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])


@pytest.fixture(scope="session")
def slurm():
    """A Slurm with the partitions main and urgent: the one that is there, or else one that is started."""
    patch = pytest.MonkeyPatch()
    there = shutil.which("sinfo") and not subprocess.run(["sinfo"], capture_output=True).returncode
    if not there:
        if os.geteuid() != 0:
            pytest.skip("Slurm is not here, and only root can install and start it")
        patch.setenv("SLURM_CONF", CONF)
        try:
            subprocess.run([CLUSTER, "start"], capture_output=True, text=True, check=True, timeout=START_SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"Slurm cannot be installed or started here: {(error.stderr or str(error)).strip()[-500:]}")
    if set(asked("sinfo", "--noheader", "--format=%R").split()) != {"main", "urgent"}:
        pytest.skip("this Slurm has other partitions than main and urgent")
    yield
    if not there:
        subprocess.run([CLUSTER, "stop"], check=True)
    patch.undo()


@pytest.fixture
def command(slurm, tmp_path):
    """Start a command in the test's folder: `command("train", "-m", ...)` returns the process."""
    environment = {**os.environ, "PYTHONPATH": search_path(), "PATH": f"{CFN.parent}{os.pathsep}{os.environ['PATH']}"}
    processes = []

    def start(*words):
        words = [str(CFN), *words] if words[0] in ("train", "resume", "runs") else list(words)
        log = (tmp_path / f"command-{len(processes)}.txt").open("w+")
        # A shell that runs the tests in the background lets its children ignore Ctrl-C.
        obey = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
        processes.append(
            subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=log, stderr=log, preexec_fn=obey)
        )
        processes[-1].log = log
        return processes[-1]

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.log.close()
    if asked("sinfo", "--noheader", "--format=%T") not in ("idle", "mixed", "allocated"):
        told("scontrol", "update", "nodename=localhost", "state=resume")  # a test failed while the node was down
    empty_queue()


@pytest.fixture(scope="session")
def untouched(tmp_path_factory):
    """The metrics of runs that nothing interrupted, by the name of their folder."""
    folder = tmp_path_factory.mktemp("untouched")
    hurry(folder)
    environment = {**os.environ, "PYTHONPATH": search_path()}
    words = [str(CFN), "train", "-m", *KEYS, "seed=0,1,2,3"]
    subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)
    return {path.parent.name: rows(path.parent) for path in folder.rglob("metrics.jsonl")}


def hurry(folder):
    """Let the runs below a folder, and those to come, end without pauses."""
    (folder / "hurry").touch()


def said(process):
    """The output of a command so far."""
    return read(Path(process.log.name))


def ended(process):
    """Wait for a command; return its exit code and its output."""
    try:
        return process.wait(timeout=PATIENCE), said(process)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"still running after {PATIENCE} s: {process.args}: {said(process)}") from None
