"""A run is a folder: its config, metrics, count tables, pictures, log and summary. Everything else is a mirror."""

import contextlib
import json
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cfn import __version__
from cfn.errors import UsageError
from cfn.types import Metrics


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

    def claim(self, hydra: dict[str, Any], overrides: list[str]) -> None:
        """Take the folder for this run, or refuse if another run has it; write `.hydra/`, as Hydra would."""
        taken = UsageError(f"{self.shown} holds a run already: nothing was touched. Choose another hydra.run.dir")
        if (self.folder / "summary.json").exists():
            raise taken
        records = self.folder / ".hydra"
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.metrics.touch(exist_ok=False)  # of two runs that come at once, one gets it
        except FileExistsError:
            raise taken from None
        records.mkdir(exist_ok=True)
        self.counts.mkdir(exist_ok=True)
        self.plots.mkdir(exist_ok=True)
        for name, content in {"config": self.config, "hydra": hydra, "overrides": overrides}.items():
            (records / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")

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
        beside = self.folder / "summary.json.new"
        beside.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        beside.replace(self.folder / "summary.json")


def remove_if_empty(folder: Path, outputs: Path) -> None:
    """Remove the folder that a refused run would leave below `outputs`, and those between that held nothing else.

    A folder elsewhere is one that the user named, and stays.
    """
    between = [path for path in (folder, *folder.parents) if outputs in path.parents]
    with contextlib.suppress(OSError):  # not empty, or gone: not ours to remove
        for path in between:
            path.rmdir()


def _peak_memory_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
