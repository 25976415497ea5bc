"""Processes that step environments."""

import contextlib
import os
import subprocess
from pathlib import Path


def stepping(pid=None):
    """The ids of those that a process has started, also if they have ended and it has not waited for them.

    Args:
        pid: Id of the process; None: this one.
    """
    command = ["ps", "-ww", "--ppid", str(pid or os.getpid()), "-o", "pid=,args="]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return [int(line.split()[0]) for line in lines if "cfn.envs" in line or "defunct" in line]


def running(pid):
    """Whether a process runs. Without an init process, an ended process stays as a zombie."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
