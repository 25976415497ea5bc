"""Reading what runs leave behind. Files may be half written, broken or another program's: a sentence, no traceback."""

import csv
import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import yaml

from cfn.errors import UsageError

Numbers = npt.NDArray[np.float64]

# libyaml reads a config in a millisecond, PyYAML's own parser in ten; neither makes objects of what it reads.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_MOST_VALUES = 10_000
_FAR = 2.0**40
"""Beyond which no state lies, nor (squared) any number that could be drawn."""
_TAIL, _FURTHEST_TAIL = 1 << 16, 1 << 22
"""Bytes at the end of `metrics.jsonl` among which the last rows are looked for, at first and at the most."""


class Series(NamedTuple):
    """A metric over time."""

    steps: Numbers
    values: Numbers


class CountTable(NamedTuple):
    """The visited states of one moment: true counts, and the bonus predicted for each."""

    step: int
    states: npt.NDArray[np.int64]
    counts: Numbers
    true_bonus: Numbers
    predicted_bonus: Numbers


def read_config(folder: Path) -> dict[str, Any]:
    """The composed config of a run. Those of one setting's seeds, alike in all but a line, are parsed once."""
    path = folder / ".hydra" / "config.yaml"
    text = _text(path)
    seed = re.search(r"^seed: (\d{1,20})\n", text, re.M)
    config = _parsed(text if seed is None else text[: seed.start()] + text[seed.end() :], path)
    if not isinstance(config, dict):
        raise UsageError(f"{path} is no config: it has no keys")
    return config if seed is None else {**config, "seed": int(seed[1])}


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The keys of a config, as a command line would have them, and their values, which JSON could hold."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _as_json(value)


def _as_json(value: Any) -> Any:
    """YAML has more kinds of keys and values than JSON, and of some a list may hold several that cannot be sorted."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def read_overrides(folder: Path) -> list[str]:
    """What the command that began a run said, `key=value` each; nothing where that was not kept."""
    path = folder / ".hydra" / "overrides.yaml"
    overrides = read_yaml(path) if path.is_file() else []
    return [str(override) for override in overrides] if isinstance(overrides, list) else []


def read_yaml(path: Path) -> Any:
    """Plain values of a YAML file, as many as a config may have: by references, a short file can be endless."""
    return _parsed(_text(path), path)


def read_summary(folder: Path) -> dict[str, Any]:
    """How a run ended, and what it is called; nothing where it has no summary yet."""
    path = folder / "summary.json"
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not valid JSON: {_first_line(error)}") from error
    if not isinstance(summary, dict):
        raise UsageError(f"{path} is not a JSON object")
    return summary


def read_metrics(folder: Path, names: Collection[str] | None = None) -> dict[str, Series]:
    """Metrics of a run, in the order of their steps; what is no row of numbers is left out.

    A killed run may end in half a line. Of a step that was written twice, the later row counts.

    Args:
        folder: The run.
        names: Which to read; None: all there are.
    """
    text = _text(folder / "metrics.jsonl")
    if names is not None:  # rows that have none of them, such as most episodes' between evaluations, are not parsed
        has_one = re.compile("|".join(re.escape(f'"{name}"') for name in names)).search
        text = "\n".join(filter(has_one, text.splitlines()))
    rows = _rows(text)
    if names is None:
        names = dict.fromkeys(name for row in rows for name in row if name != "step")
    columns = {name: _series([(row["step"], row[name]) for row in rows if name in row]) for name in names}
    return {name: series for name, series in columns.items() if len(series.steps)}


def latest(folder: Path, *names: str) -> dict[str, float]:
    """The latest values of metrics (or `step`), from the end of the file alone: quick, however long it is.

    What is not among the last rows is looked for further back, up to a limit.
    """
    path = folder / "metrics.jsonl"
    values: dict[str, float] = {}
    try:
        with path.open("rb") as file:
            size, tail = file.seek(0, 2), _TAIL
            while True:
                file.seek(max(0, size - tail))
                lines = file.read().decode("utf-8", errors="replace").splitlines()
                values |= {name: value for name in names if (value := _last(name, lines)) is not None}
                if len(values) == len(names) or tail >= min(size, _FURTHEST_TAIL):
                    return values
                tail *= 8
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _last(name: str, lines: list[str]) -> float | None:
    with_it = (row for line in reversed(lines) if f'"{name}"' in line for row in _rows(line))
    return next((row[name] for row in with_it if is_number(row.get(name))), None)


def is_number(value: Any) -> bool:
    """Whether it is a number that could be drawn; JSON has infinities, and integers of any length."""
    return isinstance(value, int | float) and abs(value) < _FAR**2


def count_tables(folder: Path) -> list[Path]:
    """The count tables of a run, oldest first."""
    return sorted(path for path in (folder / "counts").glob("step_*.csv") if re.fullmatch("[0-9]{1,18}", path.stem[5:]))


def read_counts(path: Path) -> CountTable:
    """One count table."""
    names = ("state", "count", "true_bonus", "predicted_bonus")
    try:
        header, *rows = list(csv.reader(_text(path).splitlines())) or [[]]
        if rows and len(rows[-1]) < len(header):
            rows.pop()  # half written
        columns = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(header, ())
        places = np.array([state.split() for state in columns["state"]], float)
        states = np.clip(np.nan_to_num(places), -_FAR, _FAR).astype(np.int64)
        counts, true_bonus, predicted_bonus = (np.array(columns[name], float) for name in names[1:])
    except (KeyError, ValueError, csv.Error) as error:
        raise UsageError(f"{path} is not a table of {', '.join(names)}") from error
    whole = np.all([np.abs(column) < _FAR**2 for column in (counts, true_bonus, predicted_bonus)], axis=0)
    whole &= np.isfinite(places.reshape(len(whole), places.size // max(len(whole), 1))).all(axis=1)
    step = int(path.stem.removeprefix("step_"))
    return CountTable(step, states[whole], counts[whole], true_bonus[whole], predicted_bonus[whole])


_known: dict[str, Any] = {}
"""The values of the YAML that was read last, by its text."""


def _parsed(text: str, path: Path) -> Any:
    if text in _known:
        return _known[text]
    try:
        content = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not valid YAML: {_first_line(error)}") from error
    waiting, seen = [content], 0
    while waiting and seen <= _MOST_VALUES:
        value = waiting.pop()
        seen += 1
        waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if waiting:
        raise UsageError(f"{path} is no config: it has more than {_MOST_VALUES:,} values")
    _known.clear()
    _known[text] = content
    return content


def printable(text: Any) -> str:
    """What came from a file, on one line and without what a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _rows(text: str) -> list[dict[str, Any]]:
    """The lines that are JSON objects with a step."""
    lines = text.splitlines()
    try:
        rows = json.loads(f"[{','.join(lines)}]")  # all at once is twice as fast as line by line
    except (ValueError, RecursionError):
        rows = [_row(line) for line in lines]
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("step"), int | float)]


def _row(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _series(pairs: list[tuple[Any, Any]]) -> Series:
    try:
        steps, values = np.array(pairs, float).reshape(-1, 2).T
    except (TypeError, ValueError, OverflowError):  # something that is no number, or a huge one, is among them
        numbers = [pair for pair in pairs if is_number(pair[0]) and is_number(pair[1])]
        steps, values = np.array(numbers, float).reshape(-1, 2).T
    finite = (np.abs(values) < _FAR**2) & (np.abs(steps) < _FAR**2)  # NaN is not
    if not finite.all():
        steps, values = steps[finite], values[finite]
    if (np.diff(steps) <= 0).any():
        steps, last = np.unique(steps[::-1], return_index=True)
        values = values[::-1][last]
    return Series(steps, values)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
