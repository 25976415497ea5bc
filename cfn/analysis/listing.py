"""`cfn runs`: a line for each run, from the smallest part of its files that tells."""

import fcntl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cfn.analysis.files import is_number, latest, printable, read_summary
from cfn.analysis.runs import SCORE, TRAINING, read
from cfn.errors import UsageError


class Line(NamedTuple):
    """One run."""

    env: str
    agent: str
    bonus: str
    seed: str
    steps: str
    score: str
    state: str
    folder: str


def lines(folders: Sequence[Path]) -> list[Line]:
    """A line for each run; one whose files cannot be read says so."""
    return [_line(folder) for folder in folders]


def as_text(table: Sequence[Line]) -> str:
    """The lines under each other, in columns."""
    cells = [tuple(name.upper() for name in Line._fields), *table]
    widths = [max(len(line[i]) for line in cells) for i in range(len(Line._fields))]
    right = {Line._fields.index(name) for name in ("seed", "steps", "score")}
    return "\n".join(
        "  ".join(
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def is_held(lock: Path) -> bool:
    """Whether a living process holds the lock on a file, as a run does on its own while it goes on."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError:  # there is none
        return False
    return False


def state_of(summary: Mapping[str, Any], folder: Path) -> str:
    """How a run is: what its summary says, but that one which nobody runs is not running."""
    state = str(summary.get("state", "running"))
    return "killed" if state == "running" and not is_held(folder / "lock") else state


def _line(folder: Path) -> Line:
    try:
        summary = read_summary(folder)
        now = latest(folder, "step", SCORE, TRAINING)
        names = [summary.get(key) for key in ("env", "agent", "bonus", "seed", "total_steps")]
        if None in names:
            record = read(folder)
            names = [record.env, record.agent, record.bonus, record.seed, record.config.get("steps")]
    except UsageError:
        return Line("?", "?", "?", "", "", "", "unreadable", printable(folder))
    env, agent, bonus, seed, total = names
    done = max(now.get("step", 0), _number(summary.get("steps")))
    steps = f"{done:,.0f} of {total:,}" if isinstance(total, int) else f"{done:,.0f}"
    cells = (env, agent, bonus, seed, steps, _score(summary, now), state_of(summary, folder), folder)
    return Line(*map(printable, cells))


def _score(summary: dict[str, Any], now: dict[str, float]) -> str:
    """The last evaluation's return or, before there is one, the last training episode's, marked as such."""
    metrics = summary.get("metrics")
    known = (metrics if isinstance(metrics, dict) else {}) | now
    marks = {SCORE: "", TRAINING: " (training)"}
    return next((f"{known[name]:.4g}{mark}" for name, mark in marks.items() if is_number(known.get(name))), "")


def _number(value: Any) -> float:
    return value if is_number(value) else 0
