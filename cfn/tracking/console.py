"""Progress on the terminal: one live line if it is interactive, plain lines otherwise."""

import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, TextIO

from rich.console import Console as Screen
from rich.progress import BarColumn, Progress, TextColumn

from cfn.numbers import readable
from cfn.runs.folder import Run
from cfn.tracking.base import Tracker
from cfn.types import Array, Metrics

log = logging.getLogger(__name__)

FIELDS = {
    "return": "train/return",
    "bonus": "train/bonus",
    "error": "bonus/mse",
    "eval": "eval/return",
    "states": "explore/states",
    "episodes": "train/episodes",
}
"""Metrics shown, by label, the most important first."""

BAR = 8
"""Width of the progress bar, in characters."""
RECENT_SECONDS = 60.0
"""Seconds over which speed and time left are measured."""
PLAIN_SECONDS = 10.0
"""Seconds between plain lines, however long a step or an evaluation takes."""


class TerminalHandler(logging.StreamHandler[TextIO]):
    """Writes log messages to the current `sys.stdout`, so that they appear above a live progress line.

    Tracebacks go to the log file only.
    """

    def __init__(self) -> None:
        super().__init__(sys.stdout)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        self.stream = sys.stdout
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """Return the message without a traceback."""
        return record.getMessage()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's own name
        """Discard further output if the reader has closed the pipe (`cfn train | head`); the run continues."""
        if isinstance(sys.exception(), BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        else:
            super().handleError(record)


class Console(Tracker):
    """Shows step, speed, latest metrics and time left.

    Args:
        run: Run to show.
        step: First step, if the run is resumed.
        live: Whether to show one live line; by default, whether the output is a terminal.
        every: Seconds between plain lines.
    """

    def __init__(self, run: Run, step: int = 0, live: bool | None = None, every: float = PLAIN_SECONDS) -> None:
        self._total = int(run.config["steps"])
        self._step = step
        self._latest: Metrics = {}
        self._evaluating: float | None = None
        self._recent = deque([(time.monotonic(), step)])  # times and steps of the last minute
        self._progress: Progress | None = None
        self._stopped = threading.Event()
        if sys.stdout.isatty() if live is None else live:
            columns: list[Any] = [BarColumn(bar_width=BAR), TextColumn("{task.description}")]
            # soft_wrap: the terminal wraps printed lines, because a command that is broken in two cannot be copied.
            self._progress = Progress(*columns, console=Screen(soft_wrap=True), transient=True)
            self._task = self._progress.add_task(self._status(), total=self._total)
            self._progress.start()
            every = 0.5
        self._refresher = threading.Thread(target=self._refresh, args=(every,), daemon=True)
        self._refresher.start()

    def tick(self, step: int) -> None:
        """Remember the step; a thread shows it."""
        self._step = step

    def evaluating(self, done: float) -> None:
        """Remember the progress of an evaluation."""
        self._evaluating = done

    def evaluated(self, step: int, rooms: Mapping[int, Array]) -> None:
        """Show training again."""
        self._evaluating = None

    def log(self, step: int, metrics: Metrics) -> None:
        """Remember the latest metrics."""
        self._latest.update(metrics)

    def finish(self, failed: bool = False) -> None:
        """Remove the live line and write a last plain one."""
        self._stopped.set()
        self._refresher.join()
        if self._progress is not None:
            self._progress.stop()
        log.info(self._status())

    def _refresh(self, every: float) -> None:
        while not self._stopped.wait(every):
            self._measure()
            if self._progress is not None:
                left = f"{self._time_left():>8} "
                status = self._status(self._progress.console.width - BAR - len(left) - 1)
                self._progress.update(self._task, completed=self._step, description=left + status)
            else:
                log.info(f"{self._status()}  left {self._time_left()}")

    def _measure(self) -> None:
        """Remember when the current step was reached, and drop entries older than a minute."""
        now = time.monotonic()
        self._recent.append((now, self._step))
        while len(self._recent) > 2 and now - self._recent[1][0] > RECENT_SECONDS:
            self._recent.popleft()

    @property
    def _rate(self) -> float:
        """Steps per second over the last minute."""
        then, step = self._recent[0]
        return (self._step - step) / max(time.monotonic() - then, 1e-9)

    def _status(self, width: int = 1000) -> str:
        """Return as many fields as fit into the width; the total and the speed make room for the first three."""
        fields = [f"evaluating {self._evaluating:.0%}"] if self._evaluating is not None else []
        fields += [f"{label} {_shown(self._latest[name])}" for label, name in FIELDS.items() if name in self._latest]
        step = f"step {self._step:,}"
        room = width - sum(len(field) + 2 for field in fields[:3])
        heads = [f"{step}/{self._total:,}  {self._rate:,.0f}/s", f"{step}  {self._rate:,.0f}/s", step]
        status = next((head for head in heads if len(head) <= room), step)
        for field in fields:
            if len(status) + len(field) + 2 > width:
                break
            status += f"  {field}"
        return status

    def _time_left(self) -> str:
        if self._rate <= 0 or self._step >= self._total:  # at the last step, an evaluation is under way
            return "?"
        minutes, seconds = divmod(round(max(self._total - self._step, 0) / self._rate), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _shown(value: float) -> str:
    """Return counts and other large numbers as whole numbers, the others with three digits."""
    return f"{value:,}" if isinstance(value, int) else readable(value)
