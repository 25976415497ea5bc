"""`cfn runs`: a line per run.

Of the metrics only the last rows are read, and the config once per setting, so that a thousand runs take a second.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cfn.analysis.grouping import differing_keys
from cfn.errors import UsageError
from cfn.runs.folder import current_state
from cfn.runs.reading import is_number, latest, printable, read_summary
from cfn.runs.record import SCORE, TRAINING, Record


class Line(NamedTuple):
    """Columns of one run."""

    env: str
    agent: str
    bonus: str
    seed: str
    steps: str
    score: str
    state: str
    setting: str
    folder: str


def lines(folders: Sequence[Path]) -> list[Line]:
    """Return a line per run; the state of a run whose files cannot be read is "unreadable"."""
    records = {folder: record for folder in folders if (record := _read(folder)) is not None}
    settings = dict(zip(records, differing_keys(list(records.values())), strict=True))
    return [_line(folder, records.get(folder), settings.get(folder, "")) for folder in folders]


def as_text(table: Sequence[Line]) -> str:
    """Return the lines as a table with aligned columns; the column `SETTING` is left out if it is empty."""
    hidden = set() if any(line.setting for line in table) else {"setting"}
    shown = [i for i, name in enumerate(Line._fields) if name not in hidden]
    cells = [tuple(line[i] for i in shown) for line in (tuple(name.upper() for name in Line._fields), *table)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [Line._fields[i] in ("seed", "steps", "score") for i in shown]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_the_right else cell.ljust(width)
            for cell, width, to_the_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    )


def _read(folder: Path) -> Record | None:
    try:
        return Record.read(folder)
    except UsageError:
        return None


def _line(folder: Path, record: Record | None, setting: str) -> Line:
    """Return the line of a run.

    Args:
        folder: Run folder.
        record: The run; None if its config or summary cannot be read.
        setting: Keys in which it differs from other runs.
    """
    try:
        summary = read_summary(folder) if record is None else record.summary
        newest = latest(folder, "step", SCORE, TRAINING)
        total = summary.get("total_steps")
        if record is not None:
            names = [record.task, record.agent, record.bonus, record.seed]
            total = record.config.get("steps") if total is None else total
        elif None in (names := [summary.get(key) for key in ("env", "agent", "bonus", "seed")]):
            raise UsageError(f"{folder} has neither a config nor a complete summary")
    except UsageError:
        return Line("?", "?", "?", "", "", "", "unreadable", "", printable(folder))
    done = max(newest.get("step", 0), _number(summary.get("steps")))
    steps = f"{done:,.0f} of {total:,}" if isinstance(total, int) else f"{done:,.0f}"
    cells = (*names, steps, _score(summary, newest), current_state(folder, summary), setting, folder)
    return Line(*map(printable, cells))


def _score(summary: Mapping[str, Any], newest: Mapping[str, float]) -> str:
    """Return the last return of an evaluation or, if there is none yet, of a training episode, marked as such."""
    metrics = summary.get("metrics")
    known = {**(metrics if isinstance(metrics, dict) else {}), **newest}
    marks = {SCORE: "", TRAINING: " (training)"}
    return next((f"{known[name]:.4g}{mark}" for name, mark in marks.items() if is_number(known.get(name))), "")


def _number(value: Any) -> float:
    return value if is_number(value) else 0
