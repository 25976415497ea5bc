"""`cfn runs --watch`: a live table of runs in the terminal."""

import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from cfn.analysis.listing import Line, as_line
from cfn.analysis.planned import listed
from cfn.analysis.sides import Filter
from cfn.errors import UsageError
from cfn.runs.reading import latest
from cfn.runs.record import SPEED
from cfn.runs.sweeps import FAILED_TO_START

EVERY_SECONDS = 2.0
COLUMNS = ("env", "agent", "bonus", "seed", "steps", "score", "state", "left", "setting")
ENDED = ("finished", "pruned", "failed", FAILED_TO_START)
STYLES = {"running": "green", "failed": "red", "failed to start": "red", "killed": "yellow", "stopped": "yellow"}


class Rates:
    """Measures the speed of runs while they are watched; before that, uses the speed at their last evaluation."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[float, int]] = {}

    def seconds_left(self, line: Line, now: float) -> float | None:
        """Return the seconds that a running run still needs; None if it is not running or its speed is not known."""
        done, total = progress(line)
        if line.state != "running" or total is None:
            return None
        then, start = self._first.setdefault(line.folder, (now, done))
        rate = (done - start) / (now - then) if done > start else _recorded_rate(line.folder)
        return (total - done) / rate if rate else None


def watch(path: Path, filters: Sequence[str], sort: str, where: Sequence[Filter] = ()) -> None:
    """Show a table until every run is finished or has failed, or until Ctrl-C. A stopped run may start again.

    Args:
        path: Folder of runs, or the record of a sweep.
        filters: Filters `key=value` on the columns env, agent, bonus, seed and state; values may be lists.
        sort: Column to sort by.
        where: Conditions on the keys of the runs, as of a list.
    """
    if "=" in path.name and not path.exists():  # the path was left out
        path, filters = Path("outputs"), [str(path), *filters]
    wanted = dict(map(_parsed, filters))
    if sort not in COLUMNS:
        raise UsageError(f"--sort {sort}: there is no such column; choose from {', '.join(COLUMNS)}")
    rates = Rates()
    console = Console() if sys.stdout.isatty() else Console(width=200)
    table, ended = drawn(path, wanted, sort, rates, where)
    if not console.is_terminal:  # a pipe gets the table once
        console.print(table)
        return
    with Live(table, console=console, auto_refresh=False) as live:
        while not ended:
            time.sleep(EVERY_SECONDS)
            table, ended = drawn(path, wanted, sort, rates, where)
            live.update(table, refresh=True)


def drawn(
    path: Path, wanted: dict[str, set[str]], sort: str, rates: Rates, where: Sequence[Filter] = ()
) -> tuple[Table, bool]:
    """Return the table of the runs that pass the filters, and whether all runs, shown or not, have ended."""
    found, problems = listed(path, where)
    every = [as_line(row) for row in found]
    if not every:
        raise UsageError("; ".join(problems))
    chosen = [line for line in every if all(getattr(line, key) in values for key, values in wanted.items())]
    now = time.monotonic()
    rows = [(line, rates.seconds_left(line, now)) for line in chosen]
    states = Counter(line.state for line in chosen)
    title = f"{len(chosen)} of {len(every)} runs: " + ", ".join(f"{n} {state}" for state, n in states.most_common())
    table = Table(title=title, title_justify="left", box=None)
    for column in COLUMNS:
        table.add_column(column.upper(), justify="right" if column in ("seed", "steps", "score", "left") else "left")
    for line, left in sorted(rows, key=lambda row: sort_key(sort, *row)):
        cells = [_clock(left) if column == "left" else getattr(line, column) for column in COLUMNS]
        table.add_row(*cells, style=STYLES.get(line.state))
    return table, all(line.state in ENDED for line in every)


def sort_key(column: str, line: Line, left: float | None) -> tuple[bool, float, str]:
    """Return the sort key of a row: numbers sort as numbers, empty cells last."""
    if column == "left":
        return left is None, left or 0.0, line.state
    text = str(getattr(line, column))
    number = re.match(r"-?[\d.,]+(e-?\d+)?", text)
    return not text, float(number[0].replace(",", "")) if number and number[0].strip(",.-") else 0.0, text


def progress(line: Line) -> tuple[int, int | None]:
    """Return the steps of a run so far and its total steps, parsed from its line."""
    numbers = [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", line.steps)]
    return (numbers[0] if numbers else 0), (numbers[1] if len(numbers) > 1 else None)


def _parsed(text: str) -> tuple[str, set[str]]:
    key, equals, values = text.partition("=")
    if not equals or key not in ("env", "agent", "bonus", "seed", "state"):
        raise UsageError(f"{text}: filters are of the form env=, agent=, bonus=, seed= or state=VALUE[,VALUE...]")
    return key, set(values.split(","))


def _recorded_rate(folder: str) -> float | None:
    try:
        return latest(Path(folder), SPEED).get(SPEED)
    except UsageError:
        return None


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
