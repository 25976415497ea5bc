"""Resuming a sweep: which of its runs to continue, which to start, and which to leave alone."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cfn.errors import UsageError
from cfn.launch.planning import Job, quoted
from cfn.launch.queue import queued_runs
from cfn.runs.folder import as_typed
from cfn.runs.layout import Layout
from cfn.runs.reading import read_yaml
from cfn.runs.record import find_runs
from cfn.runs.sweeps import FAILED_TO_START, NOT_STARTED, PlannedRun, SweepRecord, find_sweeps, is_sweep


class Found(NamedTuple):
    """Runs to launch again, the sweeps they belong to, and sentences on what was found."""

    jobs: list[Job]
    records: list[SweepRecord]
    report: list[str]


def unfinished(paths: Sequence[Path], changes: Sequence[str] = ()) -> Found:
    """Return the runs that are neither finished nor running.

    Args:
        paths: Records of sweeps, run folders, or folders above runs.
        changes: New values of keys, as `key=value`. With changes (`steps=...`), finished runs are continued, too.
    """
    records = read_records(paths)
    planned = {run.folder.resolve(): run for record in records for run in record.runs}
    strays = [folder for folder in _folders(paths) if folder.resolve() not in planned]
    planned |= {folder.resolve(): PlannedRun(folder.absolute(), ()) for folder in strays}
    states = {run: run.state for run in planned.values()}
    lost = [run for run, state in states.items() if run.error_file is None and not run.started]
    for run in lost:
        del states[run]
    queued = {folder for record in records for folder in queued_runs(record.files.jobs)}
    states |= {run: "queued" for run, state in states.items() if run.folder in queued and state != "finished"}
    left = [
        run for run, state in states.items() if state in ("running", "queued") or (state == "finished" and not changes)
    ]
    jobs = [Job(run, tuple(changes)) for run in states if run not in left]
    fresh = sum(states[job.run] in (NOT_STARTED, FAILED_TO_START) for job in jobs)
    running = [run for run in left if states[run] != "finished"]
    finished, started = len(left) - len(running), len(jobs) - fresh
    report = [f"{_runs(len(states))}: {finished} finished, {started} to continue, {fresh} to start."]
    report += [f"{as_typed(run.folder)} is {states[run]} already and is left alone." for run in running]
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


STUDY_OVERRIDES = r"hydra(/sweeper(/sampler)?=\w+$|\.sweeper\.(n_trials|n_jobs|direction|max_failure_rate|params)\b)"
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
