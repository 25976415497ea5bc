"""Slurm's queue, as `squeue` shows it: no accounting database is needed."""

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from cfn.runs import lock
from cfn.runs.atomic import write_atomically
from cfn.runs.layout import JOBS, QUEUE_LOCK, SWEEPS

ASK_SECONDS = 10.0
"""Seconds between two calls of squeue: the cluster's controller serves everyone."""
ATTEMPTS, RETRY_SECONDS = 3, 2.0
"""Calls of squeue for the state of one job, while Slurm does not answer: a preempted job has a few seconds."""
MISSED = 2
"""Number of answers in a row without a job until it counts as ended: its result may be visible a moment later."""


class Queue:
    """Finds out which jobs have left the queue, with few calls of squeue."""

    def __init__(self) -> None:
        self._asked, self._missed = 0.0, dict[str, int]()

    def ended(self, ids: set[str]) -> set[str]:
        """Return the jobs that are neither pending nor running any more, as of the last call of squeue."""
        if ids and time.monotonic() - self._asked >= ASK_SECONDS:
            self._asked = time.monotonic()
            arrays = {job.partition("_")[0] for job in ids}
            there = states(arrays)
            if there is not None:
                self._missed = {job: 0 if job in there else self._missed.get(job, 0) + 1 for job in ids}
        return {job for job in ids if self._missed.get(job, 0) >= MISSED}

    def state(self, job: str) -> str | None:
        """Return the state of one job, such as RUNNING; None if unknown."""
        for attempt in range(ATTEMPTS):
            time.sleep(RETRY_SECONDS if attempt else 0)
            if (there := states({job})) is not None:
                return there.get(job)
        return None


def states(jobs: set[str]) -> dict[str, str] | None:
    """Return the state of each pending or running job, or task of an array; None if Slurm does not answer."""
    command = ["squeue", "--noheader", "--array", "--format=%i|%T", f"--jobs={','.join(sorted(jobs))}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode and "Invalid job id" not in done.stderr:  # the controller is down
        return None
    rows = (line.strip().split("|") for line in done.stdout.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


@contextlib.contextmanager
def submitting(outputs: Path) -> Iterator[None]:
    """Let one command at a time submit jobs, so that the next command sees them in the queue.

    Args:
        outputs: Folder of outputs.
    """
    (outputs / SWEEPS).mkdir(parents=True, exist_ok=True)
    with lock.hold_in_turn(outputs / SWEEPS / QUEUE_LOCK):
        yield


def remember(folder: Path, jobs: Mapping[str, Path]) -> None:
    """Record which job trains which run, for `queued_runs`.

    Args:
        folder: Folder of the sweep's jobs.
        jobs: Run folder of each job.
    """
    first = next(iter(jobs)).partition("_")[0]
    text = json.dumps({job: str(run) for job, run in jobs.items()}, indent=1)
    folder.mkdir(parents=True, exist_ok=True)  # missing if the user has named another folder for the logs
    write_atomically(folder / f"{first}.json", text.encode())


def queued_runs(outputs: Path) -> set[Path]:
    """Return the run folders whose jobs are still in Slurm's queue, pending or running.

    Args:
        outputs: Folder of outputs; it may contain no sweep.
    """
    jobs: dict[str, str] = {}
    for path in (outputs / SWEEPS).glob(f"*/{JOBS}/*.json"):
        with contextlib.suppress(OSError, ValueError, TypeError):  # damaged: locks still keep runs apart
            jobs |= json.loads(path.read_text(encoding="utf-8"))
    if not jobs or shutil.which("squeue") is None:
        return set()
    there = states({job.partition("_")[0] for job in jobs}) or {}
    return {Path(run) for job, run in jobs.items() if job in there}
