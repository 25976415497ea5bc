"""Reading what runs leave behind."""

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import yaml

Numbers = npt.NDArray[np.float64]


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
    """The composed config of a run."""
    config = yaml.safe_load((folder / ".hydra" / "config.yaml").read_text(encoding="utf-8"))
    return config if isinstance(config, dict) else {}


def read_summary(folder: Path) -> dict[str, Any]:
    """How a run ended, and what it is called."""
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return summary if isinstance(summary, dict) else {}


def read_metrics(folder: Path) -> dict[str, Series]:
    """Every metric of a run; the half line that a killed run may end in is left out."""
    columns: dict[str, tuple[list[float], list[float]]] = {}
    with (folder / "metrics.jsonl").open(encoding="utf-8") as file:
        for line in file:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            step = row.pop("step")
            for name, value in row.items():
                steps, values = columns.setdefault(name, ([], []))
                steps.append(step)
                values.append(value)
    return {name: Series(np.array(steps, float), np.array(values, float)) for name, (steps, values) in columns.items()}


def latest_counts(folder: Path) -> CountTable | None:
    """The newest count table of a run, if it has one."""
    tables = sorted((folder / "counts").glob("step_*.csv"))
    return read_counts(tables[-1]) if tables else None


def read_counts(path: Path) -> CountTable:
    """One count table."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))

    def column(name: str) -> Numbers:
        return np.array([row[name] for row in rows], float)

    return CountTable(
        step=int(path.stem.removeprefix("step_")),
        states=np.array([row["state"].split() for row in rows]).astype(float).astype(np.int64),
        counts=column("count"),
        true_bonus=column("true_bonus"),
        predicted_bonus=column("predicted_bonus"),
    )
