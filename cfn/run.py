"""A run is a folder: its config, metrics, count tables, pictures, log and summary. Everything else is a mirror."""

import contextlib
import copy
import fcntl
import json
import os
import resource
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from cfn import __version__
from cfn.analysis.files import flat, printable, read_config, read_summary
from cfn.errors import UsageError
from cfn.types import Metrics
from cfn.writing import write_whole


@dataclass(frozen=True)
class Run:
    """The folder of one run, and what the run is called.

    Attributes:
        folder: Where everything is written.
        env: The environment's name.
        agent: The agent's name.
        bonus: The bonus's name.
        seed: The run's seed.
        setting: The setting without its seed, shared by the runs that repeat it.
        config: The composed config, resolved.
    """

    folder: Path
    env: str
    agent: str
    bonus: str
    seed: int
    setting: str
    config: dict[str, Any]

    @property
    def shown(self) -> str:
        """The folder as a person would write it: from where the command was given, if it lies below."""
        here = Path.cwd()
        return str(self.folder.relative_to(here) if self.folder.is_relative_to(here) else self.folder)

    @property
    def metrics(self) -> Path:
        """One JSON object per moment."""
        return self.folder / "metrics.jsonl"

    @property
    def counts(self) -> Path:
        """The folder of count tables."""
        return self.folder / "counts"

    @property
    def plots(self) -> Path:
        """The folder of pictures."""
        return self.folder / "plots"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.folder / "checkpoints"

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The run that a folder holds. Only its files are read: nothing in them is run."""
        _refuse_traps(folder)
        if not folder.is_dir():
            raise UsageError(f"{folder}: there is no such folder")
        for needed in (folder / "summary.json", folder / ".hydra" / "config.yaml"):
            if not needed.is_file():
                raise UsageError(f"{folder} does not hold a run: there is no {needed.name}")
        try:
            summary, config = read_summary(folder), copy.deepcopy(read_config(folder))
            names = {name: printable(summary[name]) for name in ("env", "agent", "bonus", "setting")}
            if (seed := int(summary["seed"])) < 0:
                raise ValueError("no seed is negative")
            return cls(folder=folder.absolute(), seed=seed, config=config, **names)
        except UsageError as error:
            raise UsageError(f"the run in {folder} cannot be read: {error}") from error
        except KeyError as error:
            raise UsageError(f"the run in {folder} cannot be read: its summary.json has no {error}") from error
        except (ValueError, TypeError) as error:
            raise UsageError(f"the run in {folder} cannot be read: its summary.json or config is odd") from error

    @property
    def keys(self) -> dict[str, str]:
        """Every key of its config, and the value as JSON."""
        return {key: json.dumps(value) for key, value in flat(self.config)}

    @property
    def state(self) -> str:
        """Whether it is running, finished, stopped or failed, as it last said."""
        return str(read_summary(self.folder).get("state"))

    def claim(self, hydra: dict[str, Any], overrides: list[str]) -> None:
        """Take the folder for this run, or refuse if another run has it; write `.hydra/`, as Hydra would."""
        records = self.folder / ".hydra"
        if (self.folder / "summary.json").exists():
            raise self._taken()
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.metrics.touch(exist_ok=False)  # of two runs that come at once, one gets it
        except FileExistsError:
            raise self._taken() from None
        records.mkdir(exist_ok=True)
        self.counts.mkdir(exist_ok=True)
        self.plots.mkdir(exist_ok=True)
        for name, content in {"config": self.config, "hydra": hydra, "overrides": overrides}.items():
            self.record(name, content)
        self.write_summary("running", 0, 0.0, {})

    def record(self, name: str, content: Any) -> None:
        """Write one of the files in `.hydra/`."""
        write_whole(self.folder / ".hydra" / f"{name}.yaml", yaml.safe_dump(content, sort_keys=False).encode())

    def _taken(self) -> UsageError:
        with contextlib.suppress(UsageError):
            if (state := self.state) in ("running", "stopped", "failed"):
                hint = f"cfn resume {self.shown} goes on with it, or choose another hydra.run.dir"
                return UsageError(f"{self.shown} holds a run that is not finished ({state}): {hint}")
        return UsageError(f"{self.shown} holds a run already: nothing was touched. Choose another hydra.run.dir")

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Have the folder alone, or refuse if another process has it; the lock goes with the process that had it."""
        with (self.folder / "lock").open("a+") as file:
            for patience in (0.1, 0.1, None):  # whoever lists runs holds it for a moment
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if patience is None:
                        file.seek(0)
                        holder = file.read().strip() or "another"
                        raise UsageError(f"{self.shown} is being run already, by {holder}") from None
                    time.sleep(patience)
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
            yield

    def rewind(self, step: int, metrics: int) -> None:
        """Cut off what was written after this step, when `metrics.jsonl` had so many bytes."""
        if self.metrics.stat().st_size < metrics:
            raise UsageError(f"{self.metrics.name} of {self.shown} is shorter than when the checkpoint was written")
        os.truncate(self.metrics, metrics)
        for table in self.counts.glob("step_*.csv"):
            number = table.stem.removeprefix("step_")
            if number.isdecimal() and int(number) > step:
                table.unlink()

    def write_summary(self, state: str, step: int, seconds: float, latest: Metrics, error: str | None = None) -> None:
        """Write `summary.json`: what the run is, how far it came (`state`), and the latest of each metric."""
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
        write_whole(self.folder / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())


def _refuse_traps(folder: Path) -> None:
    """Refuse a folder in which writing would reach outside of it, or W&B would be told whom to trust."""
    home = folder.resolve()
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(home):
            raise UsageError(f"{path} leads out of the run's folder, so nothing there is touched: remove it")
        if not (path.is_file() or path.is_dir() or path.is_symlink()):  # a pipe, say, which would never answer
            raise UsageError(f"{path} is neither a file nor a folder: remove it")
    if (folder / "wandb" / "settings").exists():
        raise UsageError(f"{folder / 'wandb' / 'settings'} would tell W&B where to send what it knows: remove it")


def remove_if_empty(folder: Path, outputs: Path) -> None:
    """Remove the folder that a refused run would leave below `outputs`, and those between that held nothing else.

    A folder elsewhere is one that the user named, and stays.
    """
    between = [path for path in (folder, *folder.parents) if outputs in path.parents]
    with contextlib.suppress(OSError):  # not empty, or gone: not ours to remove
        for path in between:
            path.rmdir()


def forget_peak_memory() -> None:
    """Measure the peak of memory anew from here on: a process may run several runs, one after the other."""
    with contextlib.suppress(OSError):  # only Linux can
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
