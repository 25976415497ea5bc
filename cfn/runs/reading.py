"""Readers for the files of a run folder.

Files may be half written, damaged or made by another program: every problem is a `UsageError` with one sentence.
"""

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
from cfn.runs.layout import COUNT_COLUMNS, Layout, step_of

Numbers = npt.NDArray[np.float64]

# libyaml parses a config in a millisecond, PyYAML's own parser in ten. Both are safe: they create plain values only.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_MAX_YAML_VALUES = 10_000
_MAX_STATE = 2.0**40
"""Largest coordinate of a state."""
_MAX_NUMBER = _MAX_STATE**2
"""Largest number that can be drawn."""
_FIRST_TAIL, _LAST_TAIL = 1 << 16, 1 << 22
"""Bytes read from the end of `metrics.jsonl` to find the last rows, on the first and on the last attempt."""


class Series(NamedTuple):
    """Values of one metric over steps."""

    steps: Numbers
    values: Numbers


class CountTable(NamedTuple):
    """True count, true bonus and predicted bonus of every visited state, at one step.

    Attributes:
        step: Environment step.
        states: One row per state.
        counts: Number of visits to each state; a visit is an action taken there.
        true_bonus: 1 / sqrt(N) of these counts.
        predicted_bonus: Predicted bonus of each state.
        arrived: Table of the states arrived in, with arrivals as counts; None if the run did not count all arrivals,
            as in older versions. Arrivals include the last state of an episode and leave out its first.
    """

    step: int
    states: npt.NDArray[np.int64]
    counts: Numbers
    true_bonus: Numbers
    predicted_bonus: Numbers
    arrived: "CountTable | None" = None

    def only(self, keep: npt.NDArray[np.bool_]) -> "CountTable":
        """Return the rows where `keep` is True."""
        numbers = (self.counts[keep], self.true_bonus[keep], self.predicted_bonus[keep])
        return CountTable(self.step, self.states[keep], *numbers)


def read_config(folder: Path) -> dict[str, Any]:
    """Return the composed config of a run.

    The parser caches its last text. The seed line is cut out first, so the seeds of one setting are parsed once.
    """
    path = Layout(folder).config
    text = _text(path)
    seed = re.search(r"^seed: (\d{1,20})\n", text, re.M)
    config = _parsed(text if seed is None else text[: seed.start()] + text[seed.end() :], path)
    if not isinstance(config, dict):
        raise UsageError(f"{path} is not a config: it has no keys")
    return config if seed is None else {**config, "seed": int(seed[1])}


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each key of a config in command-line form (`bonus.lr`) with its value, converted to JSON types."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _as_json(value)


def _as_json(value: Any) -> Any:
    """Convert a YAML value to JSON types: YAML also has dates and keys that are not strings."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def read_choices(folder: Path, default: Mapping[str, str]) -> dict[str, Any]:
    """Return the option chosen in each config group.

    Args:
        folder: Run folder.
        default: Result if Hydra's record is missing or damaged.
    """
    try:
        return dict(read_yaml(Layout(folder).hydra)["hydra"]["runtime"]["choices"])
    except (UsageError, KeyError, TypeError, ValueError):
        return dict(default)


def read_overrides(folder: Path) -> list[str]:
    """Return the overrides of the command that started a run, such as `seed=1`; empty if they were not kept."""
    path = Layout(folder).overrides
    overrides = read_yaml(path) if path.is_file() else []
    return [str(override) for override in overrides] if isinstance(overrides, list) else []


def read_yaml(path: Path) -> Any:
    """Return the plain values of a YAML file.

    The number of values is limited, because references can make a short file expand without end.
    """
    return _parsed(_text(path), path)


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the summary of a run; empty if it has none yet."""
    path = Layout(folder).summary
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
    """Return metrics of a run, sorted by step.

    Invalid rows are skipped: a killed run may end with half a line. If a step was written twice, the later row counts.

    Args:
        folder: Run folder.
        names: Metrics to read; None: all.
    """
    text = _text(Layout(folder).metrics)
    if names is not None:  # parse only rows with one of the names: most rows are training episodes
        has_one = re.compile("|".join(re.escape(f'"{name}"') for name in names)).search
        text = "\n".join(filter(has_one, text.splitlines()))
    rows = _rows(text)
    if names is None:
        names = dict.fromkeys(name for row in rows for name in row if name != "step")
    columns = {name: _series([(row["step"], row[name]) for row in rows if name in row]) for name in names}
    return {name: series for name, series in columns.items() if len(series.steps)}


def latest(folder: Path, *names: str) -> dict[str, float]:
    """Return the latest values of metrics (or of `step`).

    Only the end of the file is read, so this is quick for long runs. The search for a metric that the last rows lack
    goes back up to a limit.
    """
    path = Layout(folder).metrics
    values: dict[str, float] = {}
    try:
        with path.open("rb") as file:
            size, tail = file.seek(0, 2), _FIRST_TAIL
            while True:
                file.seek(max(0, size - tail))
                lines = file.read().decode("utf-8", errors="replace").splitlines()
                values |= {name: value for name in names if (value := _last(name, lines)) is not None}
                if len(values) == len(names) or tail >= min(size, _LAST_TAIL):
                    return values
                tail *= 8
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _last(name: str, lines: list[str]) -> float | None:
    with_it = (row for line in reversed(lines) if f'"{name}"' in line for row in _rows(line))
    return next((row[name] for row in with_it if is_number(row.get(name))), None)


def is_number(value: Any) -> bool:
    """Return whether a value is a number that can be drawn: JSON also allows infinities and huge integers."""
    return isinstance(value, int | float) and abs(value) < _MAX_NUMBER


def read_counts(path: Path) -> CountTable:
    """Return one count table; rows with invalid numbers are left out."""
    try:
        header, *rows = list(csv.reader(_text(path).splitlines())) or [[]]
        if rows and len(rows[-1]) < len(header):
            rows.pop()  # a killed run may leave half a row
        columns = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(header, ())
        places = np.array([state.split() for state in columns["state"]], float)
        states = np.clip(np.nan_to_num(places), -_MAX_STATE, _MAX_STATE).astype(np.int64)
        counts, predicted_bonus = (np.array(columns[name], float) for name in ("count", "predicted_bonus"))
        # The true bonus of a state without visits is empty.
        true_bonus = np.array([text or "nan" for text in columns["true_bonus"]], float)
        arrivals = np.array(columns["arrivals"], float) if "arrivals" in columns else None
    except (KeyError, ValueError, csv.Error) as error:
        needed = ", ".join(name for name in COUNT_COLUMNS if name != "arrivals")
        raise UsageError(f"{path} is not a count table: it needs the columns {needed}") from error
    finite = np.isfinite(places.reshape(len(counts), places.size // max(len(counts), 1))).all(axis=1)
    finite &= np.abs(predicted_bonus) < _MAX_NUMBER
    table = CountTable(step_of(path) or 0, states, counts, true_bonus, predicted_bonus)
    visited = table.only(finite & (counts > 0) & (counts < _MAX_NUMBER) & (np.abs(true_bonus) < _MAX_NUMBER))
    # Every action leads to one arrival. A run that an older version began has counted only its later ones.
    if arrivals is None or np.nansum(arrivals) < np.nansum(counts):
        return visited
    reached = finite & (arrivals > 0) & (arrivals < _MAX_NUMBER)
    with np.errstate(divide="ignore", invalid="ignore"):
        arrived = table._replace(counts=arrivals, true_bonus=arrivals**-0.5).only(reached)
    return visited._replace(arrived=arrived)


_parsed_yaml: dict[str, Any] = {}
"""Values of the YAML text that was parsed last."""


def _parsed(text: str, path: Path) -> Any:
    if text in _parsed_yaml:
        return _parsed_yaml[text]
    try:
        content = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not valid YAML: {_first_line(error)}") from error
    remaining, counted = [content], 0
    while remaining and counted <= _MAX_YAML_VALUES:
        value = remaining.pop()
        counted += 1
        remaining += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if remaining:
        raise UsageError(f"{path} is not a config: it has more than {_MAX_YAML_VALUES:,} values")
    _parsed_yaml.clear()
    _parsed_yaml[text] = content
    return content


def printable(text: Any) -> str:
    """Return a text from a file as one line without control characters, which a terminal would execute."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _rows(text: str) -> list[dict[str, Any]]:
    """Return the lines that are JSON objects with a step."""
    lines = text.splitlines()
    try:
        rows = json.loads(f"[{','.join(lines)}]")  # one call is twice as fast as one per line
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
    except (TypeError, ValueError, OverflowError):  # some are not numbers, or too large
        numbers = [pair for pair in pairs if is_number(pair[0]) and is_number(pair[1])]
        steps, values = np.array(numbers, float).reshape(-1, 2).T
    finite = (np.abs(values) < _MAX_NUMBER) & (np.abs(steps) < _MAX_NUMBER)  # False for NaN
    if not finite.all():
        steps, values = steps[finite], values[finite]
    if (np.diff(steps) <= 0).any():
        steps, last = np.unique(steps[::-1], return_index=True)
        values = values[::-1][last]
    return Series(steps, values)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
