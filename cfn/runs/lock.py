"""Locks on files: one process at a time trains a run, runs a study, or submits jobs.

The operating system releases a lock when its process ends, however it ends.
"""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from cfn.errors import AlreadyDoneError

WAITS = (0.1, 0.1)
"""Seconds between attempts: `cfn runs` holds a shared lock for a moment."""
RESTARTED_WAITS = (*WAITS, *60 * (2.0,))
"""The same for a job that Slurm has restarted: a file server may hold the lock of a failed node for some time."""


@contextlib.contextmanager
def hold(path: Path, name: str) -> Iterator[None]:
    """Hold the lock of a run, or raise `AlreadyDoneError` if another process holds it.

    Args:
        path: Lock file; created if missing.
        name: Name of the run in the error message.
    """
    with path.open("a+") as file:
        waits = RESTARTED_WAITS if os.environ.get("SLURM_RESTART_COUNT", "0") != "0" else WAITS
        for wait in (*waits, None):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if wait is None:
                    file.seek(0)
                    holder = file.read().strip() or "another process"
                    fact = f"{name} is already running, in {holder}"
                    raise AlreadyDoneError(fact, "wait for it or stop it first") from None
                time.sleep(wait)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield


@contextlib.contextmanager
def hold_in_turn(path: Path) -> Iterator[None]:
    """Hold a lock; while another process holds it, wait.

    Args:
        path: Lock file; created if missing.
    """
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_held(path: Path) -> bool:
    """Return whether a running process holds the lock."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError:  # there is no lock file
        return False
    return False
