"""Reasons to stop a run before its last step: a signal, an environment that failed, or a study that prunes it.

There is one path: a signal handler, an environment or a tracker requests a stop, the loop ends after the current step,
the run writes its last checkpoint and raises the reason.
"""

import logging
import signal
import threading
from types import FrameType
from typing import Any, Self

from cfn.stop_signals import SIGNALS

log = logging.getLogger(__name__)


class StoppedError(KeyboardInterrupt):
    """A signal stopped the run after it wrote a checkpoint. Like an interrupt, it ends a whole sweep.

    Args:
        number: Number of the signal.
    """

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number
        self.code = 128 + number
        """Exit code that shells expect."""


class PrunedError(Exception):
    """A study ended the run, because its objective is too far behind that of other runs."""


class StopRequest:
    """The first reason given for stopping the run, or None. Inside a `with` block, signals give a reason.

    The first signal finishes the current step and evaluation, then stops. A second Ctrl-C interrupts at once. Other
    signals that follow are ignored: a cluster sends SIGTERM after its warning as a matter of course, and must not abort
    the checkpoint that the warning asked for.

    A request inside the `with` block of another one obeys a signal that the outer one has received already. A Slurm job
    uses it for signals that arrive before its run trains.

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
            for number, handler in self._handlers.items():
                outer = getattr(handler, "__self__", None)
                if isinstance(outer, StopRequest) and outer.signal is not None and outer.signal.number == number:
                    self._handle(number, None)
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
            self._announce(self.signal)

    def _announce(self, stopped: StoppedError) -> None:
        again = "; press Ctrl-C again to stop now" if stopped.number == signal.SIGINT else ""
        log.info(f"{stopped}: stopping after this {self.activity}{again}.")
