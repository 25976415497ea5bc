"""Progress that a person can read: a live line on a terminal, plain lines elsewhere."""

import logging
import os
import sys
import threading
import time
from typing import Any, TextIO

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from cfn.run import Run
from cfn.tracking.base import Tracker
from cfn.types import Metrics

log = logging.getLogger(__name__)

FIELDS = {
    "return": "train/return",
    "bonus": "train/bonus",
    "error": "bonus/mse",
    "eval": "eval/return",
    "states": "explore/states",
    "episodes": "train/episodes",
}
"""What is shown of the latest metrics, the most telling first."""

BAR = 8
"""The width of the live line's bar."""
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

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's own name
        """A reader that has gone away (`cfn train | head`) ends the output, not the run."""
        if isinstance(sys.exception(), BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        else:
            super().handleError(record)


class Console(Tracker):
    """Step, episodes, return, bonus, count error, steps per second, time left.

    Args:
        run: The run.
        step: Where it goes on from, if it is resumed.
        live: Whether to keep one live line; by default, whether the output is a terminal.
        every: Seconds between plain lines.
    """

    def __init__(self, run: Run, step: int = 0, live: bool | None = None, every: float = PLAIN_SECONDS) -> None:
        self._total = int(run.config["steps"])
        self._step = self._first = step
        self._latest: Metrics = {}
        self._start = time.monotonic()
        self._progress: Progress | None = None
        self._stopped = threading.Event()
        if sys.stdout.isatty() if live is None else live:
            columns: list[Any] = [BarColumn(bar_width=BAR), TimeRemainingColumn(), TextColumn("{task.description}")]
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
                width = self._progress.console.width - BAR - len(" -:--:-- ")
                self._progress.update(self._task, completed=self._step, description=self._status(width))
            else:
                log.info(f"{self._status()}  {self._time_left()}")

    def _status(self, width: int = 1000) -> str:
        """As much as goes into the width."""
        rate = (self._step - self._first) / max(time.monotonic() - self._start, 1e-9)
        status = f"step {self._step:,}/{self._total:,}  {rate:,.0f}/s"
        for label, name in FIELDS.items():
            field = f"  {label} {self._latest[name]:.3g}" if name in self._latest else ""
            if len(status) + len(field) > width:
                break
            status += field
        return status

    def _time_left(self) -> str:
        if self._step == self._first:
            return "left ?"
        seconds = (time.monotonic() - self._start) * (self._total - self._step) / (self._step - self._first)
        minutes, seconds = divmod(round(max(seconds, 0)), 60)
        return f"left {minutes // 60}:{minutes % 60:02}:{seconds:02}"
