"""Progress of a sweep whose runs train elsewhere: one line on all of them, read from their folders."""

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from cfn.launch.threads import LAUNCHER
from cfn.runs.sweeps import PlannedRun

LIVE_SECONDS, PLAIN_SECONDS = 5.0, 60.0
"""Seconds between two looks at the folders, on a terminal and elsewhere."""
SCORES = 4
"""Maximum number of scores shown."""


@contextlib.contextmanager
def shown(runs: Sequence[PlannedRun], every: float | None = None) -> Iterator[None]:
    """Show the progress of runs while a block is executed.

    Args:
        runs: Runs to show.
        every: Seconds between two lines; by default, more if the output is not a terminal.
    """
    from rich.console import Console  # slow to import, and most commands do without
    from rich.status import Status

    live = sys.stdout.isatty()
    status = Status("", console=Console()) if live else None
    stopped = threading.Event()

    def refresh() -> None:
        last = ""
        while not stopped.wait(every or (LIVE_SECONDS if live else PLAIN_SECONDS)):
            line = status_line(runs)
            if status is not None:
                status.update(line)
            elif line != last:
                print(line, flush=True)
            last = line

    thread = threading.Thread(target=refresh, daemon=True)
    with status if status is not None else contextlib.nullcontext():
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()
    print(status_line(runs), flush=True)


def watched(hydra: Any, runs: Sequence[PlannedRun]) -> contextlib.AbstractContextManager[None]:
    """Show the progress of runs that train in other processes; those of Hydra's own launcher report for themselves.

    Args:
        hydra: Hydra's own config.
        runs: Runs to show.
    """
    return contextlib.nullcontext() if hydra.runtime.choices.get(LAUNCHER, "basic") == "basic" else shown(runs)


def status_line(runs: Sequence[PlannedRun]) -> str:
    """Return one line: how many runs are done, running, queued and failed, and the last scores of the running ones."""
    from cfn.analysis.listing import as_line, rows  # slow to import, and most commands do without

    states = {run: run.state for run in runs}
    kinds = Counter(map(_kind, states.values()))
    line = f"{kinds['done']} of {len(runs)} runs done, {kinds['running']} running, {kinds['queued']} queued"
    line += f", {kinds['failed']} failed"
    listed = map(as_line, rows([run.folder for run, state in states.items() if state in ("running", "finished")]))
    scores = [f"{line.bonus} seed {line.seed}: {line.score}" for line in listed if line.score]
    return f"{line}; last scores: {', '.join(scores[-SCORES:])}" if scores else line


def _kind(state: str) -> str:
    """Return the kind of a state. A run that was stopped or killed waits for its job to start again."""
    known = {"finished": "done", "running": "running", "failed": "failed", "failed to start": "failed"}
    return known.get(state, "queued")
