"""Progress that a person can read: a live line on a terminal, plain lines elsewhere."""

import logging
import sys
import threading
import time
from typing import Any, TextIO

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from cfn.run import Run
from cfn.tracking.base import Tracker
from cfn.types import Metrics

log = logging.getLogger(__name__)

PLAIN_SECONDS = 10.0
"""A plain line comes at least this often, however long a step or an evaluation takes."""


class TerminalHandler(logging.StreamHandler[TextIO]):
    """Writes log lines to whatever `sys.stdout` is at the moment, so that they pass above a live progress line.

    Only the sentences: a traceback goes to the log file, where whoever mends the cause will look.
    """

    def __init__(self) -> None:
        super().__init__(sys.stdout)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        self.stream = sys.stdout
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """The message alone."""
        return record.getMessage()


class Console(Tracker):
    """Step, episodes, return, bonus, count error, steps per second, time left.

    Args:
        run: The run.
        live: Whether to keep one live line; by default, whether the output is a terminal.
        every: Seconds between plain lines.
    """

    def __init__(self, run: Run, live: bool | None = None, every: float = PLAIN_SECONDS) -> None:
        self._total = int(run.config["steps"])
        self._step = 0
        self._latest: Metrics = {}
        self._start = time.monotonic()
        self._progress: Progress | None = None
        self._stopped = threading.Event()
        if sys.stdout.isatty() if live is None else live:
            columns: list[Any] = [BarColumn(bar_width=20), TextColumn("{task.description}"), TimeRemainingColumn()]
            self._progress = Progress(*columns, transient=True)
            self._task = self._progress.add_task(self._status(), total=self._total)
            self._progress.start()
            every = 0.5
        self._refresher = threading.Thread(target=self._refresh, args=(every,), daemon=True)
        self._refresher.start()

    def tick(self, step: int) -> None:
        """Note the step; the refresher shows it in its own time."""
        self._step = step

    def log(self, step: int, metrics: Metrics) -> None:
        """Note the latest numbers."""
        self._latest.update(metrics)

    def finish(self, failed: bool = False) -> None:
        """Stop the live line and leave a last plain one."""
        self._stopped.set()
        self._refresher.join()
        if self._progress is not None:
            self._progress.stop()
        log.info(self._status())

    def _refresh(self, every: float) -> None:
        while not self._stopped.wait(every):
            if self._progress is not None:
                self._progress.update(self._task, completed=self._step, description=self._status())
            else:
                log.info(f"{self._status()}  {self._time_left()}")

    def _status(self) -> str:
        parts = [f"step {self._step:,} of {self._total:,}"]
        for label, name in (
            ("episodes", "train/episodes"),
            ("return", "train/return"),
            ("eval", "eval/return"),
            ("bonus", "train/bonus"),
            ("count error", "bonus/mse"),
            ("states", "explore/states"),
        ):
            if name in self._latest:
                parts.append(f"{label} {self._latest[name]:.4g}")
        parts.append(f"{self._step / max(time.monotonic() - self._start, 1e-9):,.0f} steps/s")
        return "  ".join(parts)

    def _time_left(self) -> str:
        if not self._step:
            return "left ?"
        seconds = (time.monotonic() - self._start) * (self._total / self._step - 1)
        minutes, seconds = divmod(round(max(seconds, 0)), 60)
        return f"left {minutes // 60}:{minutes % 60:02}:{seconds:02}"
