"""Resuming a sweep: runs to continue, runs to start, and runs to leave alone."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from omegaconf import DictConfig

from cfn.errors import UsageError
from cfn.launch.planning import Job, quoted
from cfn.launch.queue import queued_runs
from cfn.runs.folder import as_typed
from cfn.runs.layout import Layout
from cfn.runs.reading import read_yaml
from cfn.runs.record import find_runs
from cfn.runs.sweeps import FAILED_TO_START, NOT_STARTED, PlannedRun, SweepRecord, find_sweeps, is_sweep, outputs_around


class Found(NamedTuple):
    """Runs to launch, the sweeps they belong to, and sentences for the user on all runs found."""

    jobs: list[Job]
    records: list[SweepRecord]
    report: list[str]


def unfinished(paths: Sequence[Path], changes: Sequence[str] = ()) -> Found:
    """Return the runs that are neither finished nor running; studies are left to a command of their own.

    Args:
        paths: Records of sweeps, run folders, or folders above runs.
        changes: New values of keys, as `key=value`. With changes (`steps=...`), finished runs are continued, too.
    """
    found = read_records(paths)
    records = [record for record in found if not record.is_study]
    studies = [record for record in found if record.is_study]
    trials = {run.folder.resolve() for record in studies for run in record.runs}
    planned = {run.folder.resolve(): run for record in records for run in record.runs}
    strays = [folder for folder in _folders(paths) if folder.resolve() not in planned.keys() | trials]
    planned |= {folder.resolve(): PlannedRun(folder.absolute(), ()) for folder in strays}
    states = {run: run.state for run in planned.values()}
    lost = [run for run, state in states.items() if run.error_file is None and not run.started]
    for run in lost:
        del states[run]
    outputs = {record.files.outputs for record in records} | {outputs_around(path) for path in paths if path.is_dir()}
    queued = {folder for one in outputs for folder in queued_runs(one)}
    waiting = [run for run in states if run.folder in queued and states[run] not in ("finished", "running")]
    states |= dict.fromkeys(waiting, "queued")
    alone = ("running", "queued", "pruned")
    left = [run for run, state in states.items() if state in alone or (state == "finished" and not changes)]
    jobs = [Job(run, tuple(changes)) for run in states if run not in left]
    fresh = sum(states[job.run] in (NOT_STARTED, FAILED_TO_START) for job in jobs)
    held = [run for run in left if states[run] != "finished"]
    finished, started = len(left) - len(held), len(jobs) - fresh
    report = [f"{_runs(len(states))}: {finished} finished, {started} to continue, {fresh} to start."]
    report += [f"{as_typed(run.folder)} is {states[run]} already and is left alone." for run in held]
    names = [as_typed(record.files.folder) for record in studies]
    report += [f"{name} is a study: cfn resume {name} continues it." for name in names]
    report += [f"{as_typed(run.folder)} was killed before it wrote its summary, and no sweep knows it." for run in lost]
    return Found(jobs, records, report)


def read_records(paths: Sequence[Path]) -> list[SweepRecord]:
    """Return the records of all sweeps at the paths and in the folders of outputs that they name."""
    records: dict[Path, SweepRecord] = {}
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: there is no such file or folder")
        for record in [SweepRecord.read(path)] if is_sweep(path) else find_sweeps(path):
            records[record.files.folder.resolve()] = record
    return list(records.values())


def resume_command(config: DictConfig, paths: Sequence[Path]) -> str:
    """Return the command that continues sweeps or folders of runs with the launcher of this command.

    Args:
        config: Config of the sweep, with Hydra's part.
        paths: What to continue.
    """
    given = [str(override) for override in config.hydra.overrides.hydra]
    of_launcher = ("hydra/launcher=", "hydra.launcher.")
    launcher = [override for override in given if override.lstrip("+").startswith(of_launcher)]
    return shlex.join(["cfn", "resume", *map(as_typed, paths), *launcher])


STUDY_OVERRIDES = (
    r"hydra(/sweeper(/sampler|/pruner)?=\w+$|"
    r"\.sweeper\.((n_trials|n_jobs|direction|max_failure_rate|params)\b|pruner\.[a-z]\w*=[\d.]+$))"
)
"""Overrides of Hydra that the record of a study may set: they import nothing."""


def study_command(record: SweepRecord) -> list[str]:
    """Return the overrides of the command that began a study, to continue it.

    Args:
        record: Record of the study.
    """
    try:
        given = read_yaml(record.files.record)["hydra"]["overrides"]
        task, of_hydra = ([str(override) for override in given[kind]] for kind in ("task", "hydra"))
    except (KeyError, TypeError) as error:
        raise UsageError(f"{record.files.record} is not the record of a study") from error
    kept = [override for override in of_hydra if re.match(STUDY_OVERRIDES, override)]
    outputs, folder = quoted(record.files.outputs), quoted(record.files.folder)
    return [*task, *kept, f"hydra.sweep.dir={outputs}", f"hydra.sweeper.study={folder}"]


def _folders(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the run folders at or below the paths that are not sweeps; raise `UsageError` if a path has none."""
    for path in paths:
        if is_sweep(path):
            continue
        if Layout(path).summary.exists():  # also of a run whose metrics are missing: resuming it says so
            yield path
            continue
        found, problems = find_runs([path])
        if not found and not find_sweeps(path):
            raise UsageError("; ".join(problems))
        yield from found


def _runs(number: int) -> str:
    return f"{number} run{'s' * (number != 1)}"
