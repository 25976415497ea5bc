"""Signals that ask a run to stop, for every process that takes part in it."""

import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
"""Ctrl-C; `kill` and most clusters; warnings that Slurm sends on request: `--signal=USR1@120`, or USR2 for submitit."""


def ignore_signals() -> None:
    """Ignore the signals in this process, and unblock them; the run decides when it stops."""
    for number in SIGNALS:
        signal.signal(number, _ignore)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing. Unlike `signal.SIG_IGN`, this is not inherited by programs that the process starts."""
