"""`cfn runs`: a line per run.

Only the last rows of the metrics are read, and the config once per setting: a thousand runs take a second.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cfn.analysis.grouping import differing_keys
from cfn.analysis.sides import Filter, select
from cfn.errors import UsageError
from cfn.numbers import readable
from cfn.runs.folder import as_typed, current_state
from cfn.runs.reading import is_number, latest, printable, read_summary
from cfn.runs.record import SCORE, TRAINING, Record

SETTING_LENGTH = 60
"""Letters of a setting, or of the reason of a failure, in the table; the forms for programs have all."""


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


class Row(NamedTuple):
    """One run, for other programs. Unknown values are None.

    Attributes:
        env: Task.
        agent: Agent.
        bonus: Bonus.
        seed: Seed.
        steps: Agent steps so far.
        total_steps: Length of the run, in agent steps.
        score: Last return of an evaluation or, if there is none yet, of a training episode.
        score_of: `evaluation` or `training`.
        state: State of the run, such as `running` or `finished`.
        setting: Keys in which it differs from the other runs.
        folder: Run folder.
    """

    env: str | None
    agent: str | None
    bonus: str | None
    seed: int | None
    steps: int | None
    total_steps: int | None
    score: float | None
    score_of: str | None
    state: str
    setting: str
    folder: str


def rows(folders: Sequence[Path], filters: Sequence[Filter] = ()) -> list[Row]:
    """Return a row per run; the state of a run whose files cannot be read is "unreadable".

    Args:
        folders: Run folders.
        filters: Conditions on the runs; with conditions, runs that cannot be read are left out.
    """
    records = {folder: record for folder in folders if (record := _read(folder)) is not None}
    if filters:
        chosen = {id(record) for record in select(list(records.values()), filters)}
        records = {folder: record for folder, record in records.items() if id(record) in chosen}
        folders = list(records)
    settings = dict(zip(records, differing_keys(list(records.values())), strict=True))
    return [_row(folder, records.get(folder), settings.get(folder, "")) for folder in folders]


def as_json(table: Sequence[Row]) -> str:
    """Return the rows as a JSON list of objects."""
    return json.dumps([row._asdict() for row in table], indent=2, allow_nan=False)


def as_csv(table: Sequence[Row]) -> str:
    """Return the rows as CSV with a header; unknown values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows(table)
    return text.getvalue().rstrip("\n")


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


def _row(folder: Path, record: Record | None, setting: str) -> Row:
    """Return the row of a run.

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
            names: list[Any] = [record.task, record.agent, record.bonus, record.seed]
            total = record.config.get("steps") if total is None else total
        elif None in (names := [summary.get(key) for key in ("env", "agent", "bonus", "seed")]):
            raise UsageError(f"{folder} has neither a config nor a complete summary")
    except UsageError:
        return Row(None, None, None, None, None, None, None, None, "unreadable", "", printable(as_typed(folder)))
    env, agent, bonus, seed = names
    done = int(max(newest.get("step", 0), _number(summary.get("steps"))))
    score, score_of = _score(summary, newest)
    return Row(
        printable(env),
        printable(agent),
        printable(bonus),
        int(seed) if str(seed).lstrip("-").isdecimal() else None,
        done,
        total if isinstance(total, int) else None,
        score,
        score_of,
        printable(current_state(folder, summary)),
        printable(setting),
        printable(as_typed(folder)),
    )


def as_line(row: Row) -> Line:
    """Return a row as text for people."""
    steps = "" if row.steps is None else f"{row.steps:,}"
    steps += f" of {row.total_steps:,}" if row.steps is not None and row.total_steps is not None else ""
    score = "" if row.score is None else readable(row.score, digits=4)
    score += " (training)" if row.score_of == "training" else ""
    seed = "" if row.seed is None else str(row.seed)
    env, agent, bonus = (name or "?" for name in (row.env, row.agent, row.bonus))
    setting = row.setting if len(row.setting) <= SETTING_LENGTH else f"{row.setting[: SETTING_LENGTH - 3]}..."
    return Line(env, agent, bonus, seed, steps, score, row.state, setting, row.folder)


def _score(summary: Mapping[str, Any], newest: Mapping[str, float]) -> tuple[float | None, str | None]:
    """Return the last return of an evaluation or, if there is none yet, of a training episode; and its kind."""
    metrics = summary.get("metrics")
    known = {**(metrics if isinstance(metrics, dict) else {}), **newest}
    for name, what in ((SCORE, "evaluation"), (TRAINING, "training")):
        if is_number(known.get(name)):
            return float(known[name]), what
    return None, None


def _number(value: Any) -> float:
    return value if is_number(value) else 0
