"""The record of a sweep: every planned run, whether it has begun or not.

A run that was not reached yet, or that failed before it began, has no run folder. The record knows it by its overrides
and by the folder that it is going to have.
"""

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from cfn import __version__
from cfn.errors import UsageError, one_line
from cfn.runs.atomic import write_atomically
from cfn.runs.folder import as_typed, current_state, remove_if_empty
from cfn.runs.layout import PLAN, SWEEPS, Layout, SweepLayout
from cfn.runs.reading import read_summary

TIME = "%Y-%m-%d_%H-%M-%S"
"""Format of the name of a sweep."""
RETRY_SECONDS = 0.1
"""Seconds between attempts to begin a sweep, while another one has the name of this second."""
RUN_DEPTH = 4
"""Number of folders from a run folder up to the folder of outputs: seed, moment, agent and bonus, environment."""
NOT_STARTED, FAILED_TO_START = "not started", "failed to start"
"""States of a planned run without a run folder."""
REPEATED = "repeated"
"""Attribute of a study's trial that a stopped command left behind: another trial continues its run."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep.

    Attributes:
        folder: Run folder, which may not exist yet.
        overrides: Overrides of the run, as on a command line.
        error_file: File that holds the error of a run that failed before it began; None: it has no record.
    """

    folder: Path
    overrides: tuple[str, ...]
    error_file: Path | None = None

    @property
    def started(self) -> bool:
        """Whether the run has a complete folder, from which it can be resumed."""
        return Layout(self.folder).summary.exists()

    @property
    def state(self) -> str:
        """State of the run: that of its folder, or of its plan."""
        if self.started:
            try:
                return current_state(self.folder, read_summary(self.folder))
            except UsageError:
                return "unreadable"
        return NOT_STARTED if self.error is None else FAILED_TO_START

    @property
    def error(self) -> str | None:
        """Why the run could not begin; None if it did or has not tried."""
        if self.error_file is None or self.started:
            return None
        try:
            return self.error_file.read_text(encoding="utf-8").strip()
        except OSError:
            return None

    def write_error(self, sentence: str | None) -> None:
        """Record why the run could not begin, or remove the record of an earlier attempt."""
        if self.error_file is None:
            return
        if sentence is None:
            self.error_file.unlink(missing_ok=True)
        else:
            self.error_file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.error_file, f"{sentence}\n".encode())


@dataclass(frozen=True)
class SweepRecord:
    """The planned runs of one sweep.

    Attributes:
        files: Paths of the sweep's files.
        runs: Planned runs, in the order of the sweep.
        config_dir: Folder of the user's own configs (`--config-dir`), if any.
        experiment: Experiment of the sweep.
    """

    files: SweepLayout
    runs: tuple[PlannedRun, ...]
    config_dir: str | None = None
    experiment: str = "none"

    @classmethod
    def create(
        cls, folder: Path, runs: Sequence[tuple[Path, Sequence[str]]], config_dir: str | None, experiment: str
    ) -> Self:
        """Write the record of a new sweep.

        Args:
            folder: Folder of the sweep.
            runs: Run folder and overrides of each run.
            config_dir: Folder of the user's own configs.
            experiment: Experiment of the sweep.
        """
        files = SweepLayout(folder.absolute())
        planned = [
            PlannedRun(run.absolute(), tuple(overrides), files.error(number))
            for number, (run, overrides) in enumerate(runs)
        ]
        record = cls(files, tuple(planned), config_dir, experiment)
        record.write()
        return record

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the record of an existing sweep, named by its folder or by one of its files."""
        folder = path if path.is_dir() else path.parent if path.name == PLAN else path.with_suffix("")
        files = SweepLayout(folder.absolute())
        try:
            content = json.loads(files.plan.read_text(encoding="utf-8"))
            runs = [
                PlannedRun(_below(files.outputs, run["folder"]), _strings(run["overrides"]), files.error(number))
                for number, run in enumerate(content["runs"])
            ]
            config_dir = content["config_dir"]
            return cls(files, tuple(runs), config_dir and str(config_dir), str(content["experiment"]))
        except FileNotFoundError:
            hint = "name the folder of its runs instead"
            raise UsageError(f"{as_typed(path)} has no record of its runs ({PLAN}): {hint}") from None
        except OSError as error:
            raise UsageError(f"{files.plan} cannot be read: {error.strerror}") from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise UsageError(f"{files.plan} is not the record of a sweep: {one_line(error)}") from error

    @property
    def is_study(self) -> bool:
        """Whether the runs are trials of an Optuna study, which decides what comes next."""
        return self.files.study.exists()

    def extended(self, runs: Sequence[tuple[Path, Sequence[str]]]) -> "SweepRecord":
        """Add runs to the record, given by folder and overrides, and return it."""
        pairs = [(run.folder, run.overrides) for run in self.runs]
        return SweepRecord.create(self.files.folder, [*pairs, *runs], self.config_dir, self.experiment)

    def write(self) -> None:
        """Write the record."""
        self.files.folder.mkdir(parents=True, exist_ok=True)
        content = {
            "cfn": __version__,
            "config_dir": self.config_dir,
            "experiment": self.experiment,
            "runs": [
                {"folder": _relative(run.folder, self.files.outputs), "overrides": list(run.overrides)}
                for run in self.runs
            ],
        }
        write_atomically(self.files.plan, (json.dumps(content, indent=1) + "\n").encode())


@contextlib.contextmanager
def new_sweep(outputs: Path) -> Iterator[Path]:
    """Create the folder of a new sweep, and remove it if the `with` block leaves it empty.

    The folder is named after the time. Commands that begin in the same second get different names: they would share the
    record and the folders of their runs otherwise.

    Args:
        outputs: Folder of outputs.
    """
    above = outputs.absolute() if outputs.exists() else outputs.absolute().parent  # keeps a folder of the user
    while True:
        folder = outputs / SWEEPS / datetime.now().strftime(TIME)
        try:
            folder.mkdir(parents=True)
            break
        except FileExistsError:
            time.sleep(RETRY_SECONDS)
    try:
        yield folder
    finally:
        remove_if_empty(folder.absolute(), above)


def find_sweeps(path: Path) -> list[SweepRecord]:
    """Return the readable records of the sweeps in a folder of outputs, oldest first."""
    records = []
    for plan in sorted((path / SWEEPS).glob(f"*/{PLAN}")):
        try:
            records.append(SweepRecord.read(plan.parent))
        except UsageError:  # `cfn resume` names the problem; a list of runs does without
            continue
    return records


def is_sweep(path: Path) -> bool:
    """Return whether a path names a sweep: its record, its figure, or its folder."""
    return path.absolute().parent.name == SWEEPS and (path.suffix in (".yaml", ".png") or path.is_dir())


def outputs_around(path: Path) -> Path:
    """Return the folder of outputs that a folder belongs to: the nearest one with sweeps, or else the folder itself.

    Args:
        path: Folder of outputs, or a folder in it, down to a run folder.
    """
    folder = path.absolute()
    nearest = (folder, *folder.parents[:RUN_DEPTH])
    return next((one for one in nearest if (one / SWEEPS).is_dir()), folder)


def _relative(folder: Path, outputs: Path) -> str:
    return str(folder.relative_to(outputs) if folder.is_relative_to(outputs) else folder)


def _below(outputs: Path, folder: Any) -> Path:
    if not isinstance(folder, str):
        raise TypeError("a folder is not a text")
    return outputs / folder


def _strings(values: Any) -> tuple[str, ...]:
    """Return the overrides of a run. Those of Hydra itself could load any class: they belong to the command."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("overrides are not a list of texts")
    if any(value.lstrip("+~").startswith(("hydra.", "hydra/")) for value in values):
        raise ValueError("a run has overrides of Hydra itself")
    return tuple(values)
