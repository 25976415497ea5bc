"""A run is a folder. `Run` describes it, for the process that writes it and for commands that read it."""

import contextlib
import copy
import json
import os
import resource
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from cfn import __version__
from cfn.errors import UsageError
from cfn.runs import lock
from cfn.runs.atomic import write_atomically
from cfn.runs.layout import Layout, step_of
from cfn.runs.reading import flat, printable, read_choices, read_config, read_summary
from cfn.types import Metrics

WANDB_LINK = "debug-core.log"
"""Name of the link out of the run folder that W&B writes beside its logs."""


@dataclass(frozen=True)
class Run:
    """One run: its folder, its names and its config.

    Attributes:
        folder: Run folder.
        env: Name of the environment.
        agent: Name of the agent.
        bonus: Name of the bonus.
        seed: Seed of the run.
        setting: Name of the setting; the seeds of one setting share it.
        config: Composed config, without interpolations.
    """

    folder: Path
    env: str
    agent: str
    bonus: str
    seed: int
    setting: str
    config: Mapping[str, Any]

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Return the run in a folder, to resume or to play it.

        Only plain values are read from the folder: nothing in it is executed, and links that lead outside are refused.
        """
        if not folder.is_dir():
            raise UsageError(f"{folder}: there is no such folder")
        _refuse_unsafe_files(folder)
        files = Layout(folder)
        for needed in (files.summary, files.config):
            if not needed.is_file():
                raise UsageError(f"{folder} is not a run folder: it has no {needed.name}")
        try:
            summary, config = read_summary(folder), copy.deepcopy(read_config(folder))
            names = {name: printable(summary[name]) for name in ("env", "agent", "bonus", "setting")}
            if (seed := int(summary["seed"])) < 0:
                raise ValueError("a seed cannot be negative")
            return cls(folder=folder.absolute(), seed=seed, config=config, **names)
        except UsageError as error:
            raise UsageError(f"the run in {folder} cannot be read: {error}") from error
        except KeyError as error:
            raise UsageError(f"the run in {folder} cannot be read: {files.summary.name} has no {error}") from error
        except (ValueError, TypeError) as error:
            reason = f"{files.summary.name} or the config has an unexpected format"
            raise UsageError(f"the run in {folder} cannot be read: {reason}") from error

    @property
    def files(self) -> Layout:
        """Paths of the run's files."""
        return Layout(self.folder)

    @property
    def shown(self) -> str:
        """Folder as a user would type it."""
        return as_typed(self.folder)

    @property
    def keys(self) -> dict[str, str]:
        """Every key of the config in command-line form, with its value as JSON."""
        return {key: json.dumps(value) for key, value in flat(self.config)}

    @property
    def choices(self) -> dict[str, Any]:
        """Option chosen in each config group, for error messages."""
        return read_choices(self.folder, default={"env": self.env, "agent": self.agent, "bonus": self.bonus})

    @property
    def recorded_state(self) -> str:
        """State in the summary: `running`, `finished`, `stopped`, `pruned` or `failed`."""
        return str(read_summary(self.folder).get("state"))

    def claim(self, hydra: dict[str, Any], overrides: list[str], reserved: bool = False) -> None:
        """Create the folder and its records, or raise `UsageError` if it already holds a run.

        Args:
            hydra: Hydra's own config.
            overrides: Overrides of the command line.
            reserved: Whether the folder belongs to this run alone, and its lock is held: an earlier process may have
                been killed before it wrote all records.
        """
        files = self.files
        if files.summary.exists():
            raise occupied(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            files.metrics.touch(exist_ok=reserved)  # decides between two runs that start at the same time
        except FileExistsError:
            raise occupied(self.folder) from None
        for folder in (files.config.parent, files.counts, files.plots):
            folder.mkdir(exist_ok=True)
        for path, content in ((files.config, self.config), (files.hydra, hydra), (files.overrides, overrides)):
            _write_yaml(path, content)
        self.write_summary("running", 0, 0.0, {})

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Hold the folder's lock, or raise `AlreadyDoneError` if another process trains this run."""
        return lock.hold(self.files.lock, self.shown)

    def write_config(self) -> None:
        """Write the composed config, after a resumed run has changed it."""
        _write_yaml(self.files.config, self.config)

    def rewind(self, step: int, metrics_size: int) -> None:
        """Remove metrics and count tables that were written after a checkpoint.

        Args:
            step: Step of the checkpoint.
            metrics_size: Bytes that `metrics.jsonl` had at the checkpoint.
        """
        metrics = self.files.metrics
        if metrics.stat().st_size < metrics_size:
            raise UsageError(f"{metrics.name} of {self.shown} is shorter than at the checkpoint: it was altered")
        os.truncate(metrics, metrics_size)
        for table in self.files.count_tables():
            if (step_of(table) or 0) > step:
                table.unlink()

    def write_summary(self, state: str, step: int, seconds: float, latest: Metrics, error: str | None = None) -> None:
        """Write `summary.json`.

        Args:
            state: `running`, `finished`, `stopped`, `pruned` or `failed`.
            step: Agent steps so far.
            seconds: Training time so far.
            latest: Latest value of each metric.
            error: Error message of a failed run.
        """
        summary = {
            "state": state,
            **({"error": error} if error else {}),
            "env": self.env,
            "agent": self.agent,
            "bonus": self.bonus,
            "seed": self.seed,
            "setting": self.setting,
            "steps": step,
            "total_steps": self.config["steps"],
            "seconds": round(seconds, 1),
            "memory_mb": round(_peak_memory_mb()),
            "cfn": __version__,
            "metrics": latest,
        }
        write_atomically(self.files.summary, (json.dumps(summary, indent=2) + "\n").encode())


def occupied(folder: Path) -> UsageError:
    """Return the error that a folder already holds a run."""
    shown = as_typed(folder)
    with contextlib.suppress(UsageError):
        if (state := str(read_summary(folder).get("state"))) in ("running", "stopped", "failed", "pruned"):
            hint = f"continue it with cfn resume {shown}, or choose another hydra.run.dir"
            return UsageError(f"{shown} holds an unfinished run ({state}): {hint}")
    return UsageError(f"{shown} already holds a run; nothing was changed: choose another hydra.run.dir")


def as_typed(path: Path) -> str:
    """Return a path as a user would type it: relative to the current directory if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def current_state(folder: Path, summary: Mapping[str, Any]) -> str:
    """Return the state of a run; one marked "running" whose lock is free is "killed".

    Args:
        folder: Run folder.
        summary: Content of its summary.
    """
    state = str(summary.get("state", "running"))
    return "killed" if state == "running" and not lock.is_held(Layout(folder).lock) else state


def remove_if_empty(folder: Path, outputs: Path) -> None:
    """Remove the empty folders that a refused run leaves between `folder` and `outputs`.

    A folder outside `outputs` was named by the user and stays.
    """
    with contextlib.suppress(OSError):  # not empty, or already gone
        for path in _between(folder, outputs):
            path.rmdir()


def _between(folder: Path, outputs: Path) -> Iterator[Path]:
    return (path for path in (folder, *folder.parents) if outputs in path.parents)


def reset_peak_memory() -> None:
    """Reset this process's peak memory (Linux only): one process may train several runs in turn."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _write_yaml(path: Path, content: Any) -> None:
    write_atomically(path, yaml.safe_dump(content, sort_keys=False).encode())


def _refuse_unsafe_files(folder: Path) -> None:
    """Raise `UsageError` if writing to the folder could reach outside, block, or redirect W&B.

    The link that W&B itself leaves, from its log to the user's cache, is removed.
    """
    home = folder.resolve()
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(home):
            if path.is_relative_to(Layout(folder).wandb) and path.name == WANDB_LINK:
                path.unlink()
                continue
            raise UsageError(f"{path} is a link out of the run folder; nothing was changed: remove it")
        if not (path.is_file() or path.is_dir() or path.is_symlink()):  # reading a pipe would block
            raise UsageError(f"{path} is neither a file nor a folder: remove it")
    settings = Layout(folder).wandb / "settings"
    if settings.exists():
        raise UsageError(f"{settings} could redirect what W&B uploads: remove it")
