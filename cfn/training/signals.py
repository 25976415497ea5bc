"""Reasons to stop a run before its last step: a signal, or an environment that failed.

There is one path: a signal handler or an environment requests a stop, the loop ends after the current step, the run
writes its last checkpoint and raises the reason.
"""

import logging
import signal
import threading
from types import FrameType
from typing import Any, Self

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
"""Ctrl-C; `kill` and most clusters; warnings that Slurm sends on request: `--signal=USR1@120`, or USR2 for submitit."""


class StoppedError(KeyboardInterrupt):
    """A signal stopped the run after it wrote a checkpoint. Like an interrupt, it ends a whole sweep.

    Args:
        number: Number of the signal.
    """

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.code = 128 + number
        """Exit code that shells expect."""


class StopRequest:
    """The first reason given for stopping the run, or None. Inside a `with` block, signals give a reason.

    The first signal finishes the current step and evaluation, then stops. A second Ctrl-C interrupts at once. Other
    signals that follow are ignored: a cluster sends SIGTERM after its warning as a matter of course, and must not abort
    the checkpoint that the warning asked for.

    Attributes:
        activity: Activity that the run completes after the first signal, for the log message.
        signal: First signal that has arrived, or None.
    """

    def __init__(self) -> None:
        self.reason: BaseException | None = None
        self.activity = "step"
        self.signal: StoppedError | None = None
        self._interrupts = 0
        self._handlers: dict[signal.Signals, Any] = {}

    def __call__(self, reason: BaseException) -> None:
        """Request a stop after the current step."""
        self.reason = self.reason or reason

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python allows handlers only there
            self._handlers = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._interrupts += number == signal.SIGINT
        if self._interrupts > 1:
            raise KeyboardInterrupt
        if self.signal is None:
            self.signal = StoppedError(signal.Signals(number))
            self(self.signal)
            again = "; press Ctrl-C again to stop now" if number == signal.SIGINT else ""
            log.info(f"{self.signal}: stopping after this {self.activity}{again}.")
