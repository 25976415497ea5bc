"""Runs of sweeps that have no folder yet: not reached so far, or failed before they began."""

from collections.abc import Collection, Sequence
from pathlib import Path

from cfn.analysis.listing import Row, rows
from cfn.analysis.sides import Filter
from cfn.runs.folder import as_typed
from cfn.runs.reading import printable
from cfn.runs.record import find_runs
from cfn.runs.sweeps import PlannedRun, SweepRecord, find_sweeps, is_sweep

SETTING_KEYS = ("env", "agent", "bonus", "seed")


def listed(path: Path, filters: Sequence[Filter] = ()) -> tuple[list[Row], list[str]]:
    """Return a row per run of a folder or of a sweep, started or not, and a sentence on each problem.

    Args:
        path: Folder of runs, or the record of a sweep.
        filters: Conditions on the runs; with conditions, runs that have not begun are left out.
    """
    if is_sweep(path):
        records = [SweepRecord.read(path)]
        folders: list[Path] = [run.folder for run in records[0].runs if run.started]
        problems: list[str] = []
    else:
        records = find_sweeps(path)
        folders, problems = find_runs([path])
    known = {folder.resolve() for folder in folders}
    table = rows(folders, filters)
    if not filters:
        for record in records:
            shared = set.intersection(*(set(run.overrides) for run in record.runs)) if record.runs else set[str]()
            waiting = [run for run in record.runs if not run.started and run.folder.resolve() not in known]
            table += [planned_row(run, shared) for run in waiting]
    if not table and not problems:
        problems = [f"no run of {path} has been planned yet"]
    return table, problems if not table or folders else []


def planned_row(run: PlannedRun, shared: Collection[str] = ()) -> Row:
    """Return the row of a run that has not begun: names from its folder and overrides, and the reason if it failed.

    Args:
        run: Planned run.
        shared: Overrides that all runs of its sweep have.
    """
    given = dict(override.lstrip("+").partition("=")[::2] for override in run.overrides)
    env, pair, _, seed = ["?", "?", "?", "?", *run.folder.parts][-4:]
    agent, _, bonus = pair.partition("-")
    in_path = {"env": env, "agent": agent, "bonus": bonus, "seed": seed.removeprefix("seed=")} if bonus else {}
    names = [in_path.get(key) or given.get(key, "?") for key in SETTING_KEYS]
    env, agent, bonus, seed = map(printable, names)
    own = [override for override in run.overrides if override not in shared]
    setting, folder = printable(run.error or _setting(own)), printable(as_typed(run.folder))
    number = int(seed) if seed.isdecimal() else None
    return Row(env, agent, bonus, number, None, None, None, None, run.state, setting, folder)


def _setting(overrides: Sequence[str]) -> str:
    """Return the overrides that the other columns do not show."""
    keys = ("tracker", "threads", "steps", "device", "outputs", "pictures", *SETTING_KEYS)
    return " ".join(override for override in overrides if override.lstrip("+").partition("=")[0] not in keys)
