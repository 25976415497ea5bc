"""The batch script of a Slurm job and what can go wrong with it: a killed run, a refusal of sbatch, a full disk."""

import errno
import os
import shlex
import shutil
from pathlib import Path

NO_SPACE = [os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT)]
FREE_BYTES = 2**16
"""Free bytes below which a disk counts as full: a job could not write its result."""


def is_disk_full(log: Path) -> bool:
    """Return whether a job ended because it could not write, by its log and by the space that is left.

    Args:
        log: Log of the job, on the same disk as the run.
    """
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
        return shutil.disk_usage(log.parent).free < FREE_BYTES or any(sentence in text for sentence in NO_SPACE)
    except OSError:  # the job has no log
        return False


def requeue_if_killed(most: int, folder: Path) -> list[str]:
    """Return the shell commands after a run.

    They requeue a job that was killed on its node (137), a limited number of times, and one that the warning signal
    ended before Python could block it (140).

    Args:
        most: Number of times that a killed job is requeued. Preemptions and time limits do not count.
        folder: Folder of the sweep's jobs, for a file with a line per kill.
    """
    # The number of an array's last task is that of the whole array: a task is requeued by array and index.
    task = "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"
    kills = f'{shlex.quote(str(folder))}/"$task.kills"'
    return [
        "code=$?",
        f"task={task}",
        f"if [ $code -eq 137 ]; then date >> {kills}; fi",
        f"if [ $code -eq 140 ] || {{ [ $code -eq 137 ] && [ $(wc -l < {kills}) -le {most} ]; }}; then",
        '  scontrol requeue "$task"',
        "fi",
        "exit $code",
    ]


def refusal(message: str) -> str:
    """Return the reason in a message of sbatch, with the key to change."""
    lines = [line.strip() for line in message.splitlines() if "error:" in line]
    reason = lines[-1].partition("error:")[2].strip() if lines else " ".join(message.split())
    reason = reason.removeprefix("Batch job submission failed:").strip()
    keys = {
        "partition": "partition",
        "account": "account",
        "qos": "qos",
        "memory": "mem_gb",
        "time limit": "timeout_min",
        "gres": "gpus_per_node (0: no GPU) and hydra.launcher.gres",
        "feature": "constraint",
        "cpu": "cpus_per_task",
        "node configuration": "gpus_per_node, hydra.launcher.cpus_per_task or hydra.launcher.mem_gb",
    }
    hint = next((key for word, key in keys.items() if word in reason.lower()), None)
    return f"{reason}: check hydra.launcher.{hint}" if hint else reason
