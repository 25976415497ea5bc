"""Runs of sweeps that have no folder yet: not reached so far, or failed before they began."""

from collections.abc import Sequence
from pathlib import Path

from cfn.analysis.listing import Row, rows
from cfn.analysis.sides import Filter
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
        runs = SweepRecord.read(path).runs
        folders: list[Path] = [run.folder for run in runs if run.started]
        problems: list[str] = []
    else:
        runs = tuple(run for record in find_sweeps(path) for run in record.runs)
        folders, problems = find_runs([path])
    waiting = [run for run in runs if not run.started]
    known = {folder.resolve() for folder in folders}
    table = rows(folders, filters)
    if not filters:
        table += [planned_row(run) for run in waiting if run.folder.resolve() not in known]
    return table, problems if not table or folders else []


def planned_row(run: PlannedRun) -> Row:
    """Return the row of a run that has not begun: names from its folder and overrides, and why it failed."""
    given = dict(override.lstrip("+").partition("=")[::2] for override in run.overrides)
    env, pair, _, seed = ["?", "?", "?", "?", *run.folder.parts][-4:]
    agent, _, bonus = pair.partition("-")
    in_path = {"env": env, "agent": agent, "bonus": bonus, "seed": seed.removeprefix("seed=")} if bonus else {}
    names = [in_path.get(key) or given.get(key, "?") for key in SETTING_KEYS]
    env, agent, bonus, seed = map(printable, names)
    setting, folder = printable(run.error or _setting(run.overrides)), printable(run.folder)
    number = int(seed) if seed.isdecimal() else None
    return Row(env, agent, bonus, number, None, None, None, None, run.state, setting, folder)


def _setting(overrides: Sequence[str]) -> str:
    """Return the overrides that the other columns do not show."""
    keys = ("tracker", "threads", "steps", "device", "outputs", *SETTING_KEYS)
    return " ".join(override for override in overrides if override.lstrip("+").partition("=")[0] not in keys)
