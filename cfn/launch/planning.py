"""Planning of a sweep: every run is composed, checked and given its folder before the first one starts.

A job finds its folder in its overrides. A job that a cluster starts again therefore finds the run that it began, and
`cfn resume` knows the runs that were never reached.
"""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf, open_dict

from cfn import naming
from cfn.config import check, refuse_untrusted
from cfn.errors import UsageError
from cfn.launch.composed import AUTO, without_hydra
from cfn.runs.folder import as_typed, occupied
from cfn.runs.layout import SWEEPS, Layout
from cfn.runs.sweeps import PlannedRun


class Plan(NamedTuple):
    """Folder and overrides of a run, and the reason why it cannot start, or None."""

    folder: Path
    overrides: list[str]
    problem: str | None


@dataclass(frozen=True)
class Job:
    """A run to launch.

    Attributes:
        run: Planned run.
        changes: Overrides to add to those of the plan, if the run has not started.
    """

    run: PlannedRun
    changes: tuple[str, ...] = ()

    def overrides(self, threads: int | None = None) -> list[str]:
        """Return the overrides of the job. A run that has started keeps the config in its folder.

        Args:
            threads: Value of `threads`, unless the user has set the key.
        """
        keys = [] if self.run.started else [*self.run.overrides, *self.changes]
        if threads is not None and keys and not any(key.startswith("threads=") for key in keys):
            keys.append(f"threads={threads}")
        keys.append(f"hydra.sweep.subdir={quoted(self.run.folder)}")
        if self.run.error_file is not None:
            keys.append(f"hydra.sweeper.error_file={quoted(self.run.error_file)}")
        return keys


class Planner:
    """Composes the runs of a sweep.

    Args:
        config: Config of the sweep.
        loader: Hydra's loader of configs.
        describe: Function that turns an error into a sentence.
    """

    def __init__(self, config: DictConfig, loader: ConfigLoader, describe: Callable[[BaseException], str]) -> None:
        self._config, self._loader, self._describe = config, loader, describe
        self._names_folders = True
        self._time = ""

    @property
    def config_dir(self) -> str | None:
        """Folder of the user's own configs."""
        sources = self._config.hydra.runtime.config_sources
        return next((str(source.path) for source in sources if source.provider == "command-line"), None)

    def name_run_folders(self, time: str, constant: set[str]) -> None:
        """Add the start of the sweep and the keys that are not swept to the config of every run."""
        self._time = time
        hydra = self._config.hydra.overrides.hydra
        self._names_folders = not any(override.startswith("hydra.sweep.subdir=") for override in hydra)
        if self._names_folders:
            hydra.append(f"hydra.sweep.subdir=${{cfn_run_folder:{time}}}")
        keys = ",".join(f"'{key}'" for key in sorted(constant))
        hydra.append(f"hydra.job.config.override_dirname.exclude_keys=[{keys}]")

    def plan(self, runs: Sequence[list[str]]) -> list[Plan]:
        """Return the plan of each run; report runs that cannot start, or raise `UsageError` if all share one reason."""
        plans: list[Plan] = []
        for number, run in enumerate(runs):
            plans.append(self._plan(number, run, {plan.folder for plan in plans}))
        problems = [plan.problem for plan in plans]
        if None not in problems and len(set(problems)) == 1:
            raise UsageError(str(problems[0]))
        for plan in plans:
            if plan.problem is not None:
                report_failure(plan.overrides, plan.problem)
        return plans

    def startable(self, jobs: Sequence[Job], trusted: Collection[str]) -> list[Job]:
        """Return the jobs that have started or can start now; report the others, and keep the record of errors.

        Args:
            jobs: Jobs to check.
            trusted: Classes and modules outside this package that a record may name.
        """
        kept = []
        for job in jobs:
            problem = None if job.run.started else self._problem([*job.run.overrides, *job.changes], trusted)
            if problem is None:
                job.run.write_error(None)
                kept.append(job)
            else:
                report_failure(job.run.overrides, problem)
                job.run.write_error(problem)
        return kept

    def _plan(self, number: int, overrides: list[str], taken: Collection[Path]) -> Plan:
        sweep_dir = Path(self._config.hydra.sweep.dir)
        nameless = sweep_dir / SWEEPS / self._time / f"run-{number}"
        try:
            composed = self._loader.load_sweep_config(self._config, overrides)
        except Exception as error:
            return Plan(nameless, overrides, self._describe(error))
        if problem := _invalid(composed, trusted=None):
            return Plan(_folder_or(nameless, composed, number), overrides, problem)
        try:
            subdir = _subdir(composed, number)
        except Exception as error:
            return Plan(nameless, overrides, f"hydra.sweep.subdir: {self._describe(error)}")
        if self._names_folders:
            return Plan(sweep_dir / naming.unused(sweep_dir, subdir, taken), overrides, None)
        folder = sweep_dir / subdir
        in_use = folder in taken or Layout(folder).metrics.exists() or Layout(folder).summary.exists()
        return Plan(folder, overrides, str(occupied(folder.absolute())) if in_use else None)

    def _problem(self, overrides: Sequence[str], trusted: Collection[str]) -> str | None:
        """Return why a run cannot start; None if its config is valid, or can only be checked when the run starts."""
        try:
            return _invalid(self._loader.load_sweep_config(self._config, list(overrides)), trusted)
        except Exception as error:
            return self._describe(error)


def _invalid(composed: DictConfig, trusted: Collection[str] | None) -> str | None:
    choices = composed.hydra.runtime.choices
    try:
        if trusted is not None:
            refuse_untrusted(without_hydra(composed), trusted)
        if choices.agent == AUTO:  # on the machine that launches runs, the environment may not even exist
            return None
        check(without_hydra(composed), choices)
    except UsageError as error:
        return str(error)
    except Exception:  # an interpolation that has a value only while the run exists
        return None
    return None


def _folder_or(otherwise: Path, composed: DictConfig, number: int) -> Path:
    """Return the folder of a run, or `otherwise` if it has no name."""
    try:
        return Path(composed.hydra.sweep.dir) / _subdir(composed, number)
    except Exception:  # an invalid run may lack keys that its name needs
        return otherwise


def _subdir(composed: DictConfig, number: int) -> Path:
    """Return `hydra.sweep.subdir` of a run as its launcher would see it."""
    with open_dict(composed.hydra.job):
        composed.hydra.job.num, composed.hydra.job.id = number, str(number)
    before = HydraConfig.instance().cfg
    HydraConfig.instance().set_config(composed)
    try:
        return Path(str(OmegaConf.select(composed, "hydra.sweep.subdir")))
    finally:
        HydraConfig.instance().cfg = before


def quoted(value: object) -> str:
    """Return a text as a quoted value of Hydra's override grammar."""
    escaped = str(value).replace("'", "\\'")
    return f"'{escaped}'"


def report_failure(overrides: Sequence[str], reason: str, folder: Path | None = None) -> None:
    """Print that a run of a sweep failed.

    Args:
        overrides: Overrides of the run; a run that is continued has none.
        reason: Why it failed.
        folder: Run folder, if the run may have no overrides.
    """
    name = " ".join(overrides) or (as_typed(folder) if folder is not None else "")
    print(f"cfn: the run {name} failed: {reason}", file=sys.stderr, flush=True)
