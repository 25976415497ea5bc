"""The lock of a run folder: one process at a time trains a run.

The operating system releases the lock when its process ends, however it ends.
"""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from cfn.errors import UsageError

WAITS = (0.1, 0.1)
"""Seconds between attempts: `cfn runs` holds a shared lock for a moment."""
RESTARTED_WAITS = (*WAITS, *60 * (2.0,))
"""The same for a job that Slurm has restarted: a file server may hold the lock of a failed node for some time."""


@contextlib.contextmanager
def hold(path: Path, name: str) -> Iterator[None]:
    """Hold the lock, or raise `UsageError` if another process holds it.

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
                    raise UsageError(f"{name} is already running, in {holder}: wait for it or stop it first") from None
                time.sleep(wait)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
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
