"""Runs of sweeps that have no folder yet: not reached so far, or failed before they began."""

from collections.abc import Sequence
from pathlib import Path

from cfn.analysis.listing import Line, lines
from cfn.runs.reading import printable
from cfn.runs.record import find_runs
from cfn.runs.sweeps import PlannedRun, SweepRecord, find_sweeps, is_sweep

SETTING_KEYS = ("env", "agent", "bonus", "seed")


def listed(path: Path) -> tuple[list[Line], list[str]]:
    """Return a line per run of a folder or of a sweep, started or not, and a sentence on each problem.

    Args:
        path: Folder of runs, or the record of a sweep.
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
    table = lines(folders) + [planned_line(run) for run in waiting if run.folder.resolve() not in known]
    return table, problems if not table or folders else []


def planned_line(run: PlannedRun) -> Line:
    """Return the line of a run that has not begun: names from its folder and overrides, and why it failed."""
    given = dict(override.lstrip("+").partition("=")[::2] for override in run.overrides)
    env, pair, _, seed = ["?", "?", "?", "?", *run.folder.parts][-4:]
    agent, _, bonus = pair.partition("-")
    in_path = {"env": env, "agent": agent, "bonus": bonus, "seed": seed.removeprefix("seed=")} if bonus else {}
    names = [in_path.get(key) or given.get(key, "?") for key in SETTING_KEYS]
    return Line(*map(printable, (*names, "", "", run.state, run.error or _setting(run.overrides), run.folder)))


def _setting(overrides: Sequence[str]) -> str:
    """Return the overrides that the other columns do not show."""
    keys = ("tracker", "threads", "steps", "device", "outputs", *SETTING_KEYS)
    return " ".join(override for override in overrides if override.lstrip("+").partition("=")[0] not in keys)
