"""Slurm's queue, as `squeue` shows it: no accounting database is needed."""

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from cfn.runs.atomic import write_atomically

ASK_SECONDS = 10.0
"""Seconds between two questions: the cluster's controller serves everyone."""
MISSED = 2
"""Number of answers without a job until it counts as ended: its result may be visible a moment later."""


class Queue:
    """Knows which jobs have left the queue."""

    def __init__(self) -> None:
        self._asked, self._missed = 0.0, dict[str, int]()

    def ended(self, ids: set[str]) -> set[str]:
        """Return the jobs that are neither pending nor running any more; the queue is asked only now and then."""
        if ids and time.monotonic() - self._asked >= ASK_SECONDS:
            self._asked = time.monotonic()
            arrays = {job.partition("_")[0] for job in ids}
            there = states(arrays)
            if there is not None:
                self._missed = {job: 0 if job in there else self._missed.get(job, 0) + 1 for job in ids}
        return {job for job in ids if self._missed.get(job, 0) >= MISSED}

    def state(self, job: str) -> str | None:
        """Return the state of one job, such as RUNNING; None if it is not known."""
        return (states({job}) or {}).get(job)


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


def remember(folder: Path, jobs: Mapping[str, Path]) -> None:
    """Write down which jobs of the queue are to train which runs.

    Args:
        folder: Folder of the sweep's jobs.
        jobs: Run folder of each job.
    """
    first = next(iter(jobs)).partition("_")[0]
    text = json.dumps({job: str(run) for job, run in jobs.items()}, indent=1)
    write_atomically(folder / f"{first}.json", text.encode())


def queued_runs(folder: Path) -> set[Path]:
    """Return the run folders whose jobs are still in Slurm's queue, pending or running.

    Args:
        folder: Folder of the sweep's jobs; it may not exist.
    """
    jobs: dict[str, str] = {}
    for path in folder.glob("*.json"):
        with contextlib.suppress(OSError, ValueError, TypeError):  # damaged: locks still keep runs apart
            jobs |= json.loads(path.read_text(encoding="utf-8"))
    if not jobs or shutil.which("squeue") is None:
        return set()
    there = states({job.partition("_")[0] for job in jobs}) or {}
    return {Path(run) for job, run in jobs.items() if job in there}
