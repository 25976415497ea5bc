"""Progress of a sweep whose runs train in other processes: one line, computed from the run folders."""

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from omegaconf import DictConfig

from cfn.launch.resuming import resume_command
from cfn.launch.threads import LAUNCHER
from cfn.runs.layout import Layout
from cfn.runs.sweeps import PlannedRun

LIVE_SECONDS, PLAIN_SECONDS = 5.0, 60.0
"""Seconds between two updates of the line, on a terminal and elsewhere."""
SCORES = 4
"""Maximum number of scores shown."""


@contextlib.contextmanager
def shown(runs: Sequence[PlannedRun], every: float | None = None) -> Iterator[None]:
    """Show the progress of runs while the `with` block is executed.

    Args:
        runs: Runs to show.
        every: Seconds between two updates; None: `LIVE_SECONDS` on a terminal, else `PLAIN_SECONDS`.
    """
    from rich.console import Console, Group  # slow to import, and most commands do without
    from rich.status import Status
    from rich.text import Text

    earlier = {run: stamp for run in runs if (stamp := _stamp(run)) is not None}
    live = sys.stdout.isatty()
    # soft_wrap: the terminal wraps printed lines, because a command that is broken in two cannot be copied.
    status = Status("", console=Console(soft_wrap=True)) if live else None
    stopped = threading.Event()

    def refresh() -> None:
        last = ""
        while not stopped.wait(every or (LIVE_SECONDS if live else PLAIN_SECONDS)):
            line = status_line(runs, earlier)
            if status is not None:
                status.update(Group(Text(line)))  # Rich wraps the parts of a group in spite of soft_wrap
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


def watched(config: DictConfig, runs: Sequence[PlannedRun]) -> contextlib.AbstractContextManager[None]:
    """Show the progress of runs that train in other processes; those of Hydra's own launcher report for themselves.

    Args:
        config: Config of the sweep, with Hydra's part.
        runs: Runs to show.
    """
    return shown(runs) if runs and _launcher(config) != "basic" else contextlib.nullcontext()


@contextlib.contextmanager
def continuable(config: DictConfig, paths: Sequence[Path]) -> Iterator[None]:
    """Print the command that continues what is left if Ctrl-C interrupts the `with` block.

    The Slurm launcher prints it itself, because its jobs continue.

    Args:
        config: Config of the sweep, with Hydra's part.
        paths: What to continue.
    """
    try:
        yield
    except KeyboardInterrupt:
        if _launcher(config) != "slurm":
            print(what_is_left(config, paths), flush=True)
        raise


def what_is_left(config: DictConfig, paths: Sequence[Path]) -> str:
    """Return the lines that name the command to continue what is left.

    Args:
        config: Config of the sweep, with Hydra's part.
        paths: What to continue.
    """
    return f"What is left is continued by:\n{resume_command(config, paths)}"


def _launcher(config: DictConfig) -> str:
    return str(config.hydra.runtime.choices.get(LAUNCHER, "basic"))


def status_line(runs: Sequence[PlannedRun], earlier: Mapping[PlannedRun, int] | None = None) -> str:
    """Return one line: how many runs are done, running, queued and failed, and the last scores of the running ones.

    Args:
        runs: Runs to count.
        earlier: Stamps of the summaries that the runs had before they were launched: a run with the same one has not
            begun. None: all jobs have ended, and a run that was stopped or killed waits for none.
    """
    from cfn.analysis.listing import as_line, rows  # slow to import, and most commands do without

    states = {run: run.state for run in runs}
    for run, stamp in (earlier or {}).items():
        if states[run] != "running" and _stamp(run) == stamp:
            states[run] = "queued"
    kinds = Counter(_kind(state, earlier is None) for state in states.values())
    line = f"{kinds['done']} of {len(runs)} runs done, {kinds['running']} running, {kinds['queued']} queued"
    for kind in ("stopped", "pruned"):
        line += f", {kinds[kind]} {kind}" if kinds[kind] else ""
    line += f", {kinds['failed']} failed"
    listed = map(as_line, rows([run.folder for run, state in states.items() if state in ("running", "finished")]))
    scores = [f"{line.bonus} seed {line.seed}: {line.score}" for line in listed if line.score]
    return f"{line}; last scores: {', '.join(scores[-SCORES:])}" if scores else line


def _stamp(run: PlannedRun) -> int | None:
    """Return what changes whenever the summary of a run is written; None if there is none."""
    try:
        return Layout(run.folder).summary.stat().st_mtime_ns
    except OSError:
        return None


def _kind(state: str, ended: bool) -> str:
    """Return the kind of a state. A stopped or killed run is queued until its job ends: the job may start again."""
    known = {"finished": "done", "failed to start": "failed"} | {name: name for name in ("running", "failed", "pruned")}
    if ended:
        known |= {"stopped": "stopped", "killed": "stopped"}
    return known.get(state, "queued")
