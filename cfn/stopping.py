"""Being told to stop: by Ctrl-C, by `kill`, by a cluster whose time is up.

The run stops when its step is done, and an evaluation that is under way.
"""

import signal
import threading
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""Ctrl-C; `kill` and most clusters; what Slurm can send some time before the end (`--signal=USR1@120`)."""


class StoppedError(KeyboardInterrupt):
    """The run was told to stop, and did, with nothing lost. Like an interrupt, it ends a whole sweep.

    Args:
        number: The signal's.
    """

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.code = 128 + number
        """The exit code that shells expect."""


class Stopping:
    """Notes the first signal to stop, for whoever looks here after each step; a second one interrupts at once."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # others cannot listen
            self._before = {number: signal.signal(number, self._hear) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)
