"""The figures of the paper's experiments: several runs in one picture, laid out as there."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cfn.analysis.axes import decorate, show_steps
from cfn.analysis.experiments import Members, members
from cfn.analysis.files import Series
from cfn.analysis.groups import Group, is_level
from cfn.analysis.panels import (
    Style,
    bars,
    curve,
    error_curves,
    explain,
    legend_below,
    looks,
    newest_tables,
    scatter,
    scores,
    series_of,
    when,
    with_seeds,
    within_one,
)
from cfn.analysis.runs import DISCOVERIES, SCORE, STATES, Record, load
from cfn.errors import UsageError

DPI = 110


TITLES = {
    "gridworld": "Visual Gridworld",
    "gridworld_small": "Visual Gridworld, small",
    "taxi5": "Visual Taxi, 5x5",
    "taxi10": "Visual Taxi, 10x10",
    "antmaze": "Ant U-Maze",
    "pen": "Pen",
    "door": "Door",
    "hammer": "Hammer",
    "relocate": "Relocate",
    "fetch_push": "FetchPush",
    "fetch_slide": "FetchSlide",
    "fetch_pick_and_place": "FetchPickAndPlace",
    "montezuma": "Montezuma's Revenge",
}
"""What the paper calls its environments."""


def draw_experiment(name: str, folders: Sequence[Path], out: Path, conf: Path) -> tuple[Path, list[str]] | None:
    """Draw an experiment's figure from the folders of its runs, if it has one; where it is, and what it lacks."""
    if name not in FIGURES or not folders:
        return None
    found = members(load(folders)[0], name, conf)
    return save(FIGURES[name](found, Style()), out), found.problems


def save(figure: Figure, path: Path) -> Path:
    """Write a picture, in the format that its name ends in; the same figure gives the same file, to the byte."""
    dates: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    try:
        with rc_context({"svg.hashsalt": "cfn"}):
            figure.savefig(path, dpi=DPI, metadata=dates.get(path.suffix))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def scatters(found: Members, _: Style) -> Figure:
    """Figures 2, 9 and 10: predicted against true bonus, a column for each method and a row for each environment."""
    groups, tasks = found.groups, found.tasks
    methods = list(dict.fromkeys(one.label for one in groups))
    figure = Figure(figsize=(3.6 * len(methods), 3.6 * len(tasks)), layout="constrained")
    grid = figure.subplots(len(tasks), len(methods), squeeze=False)
    for row, task in enumerate(tasks):
        for column, label in enumerate(methods):
            here = [one for one in groups if (one.label, one.task) == (label, task)]
            title = label if len(tasks) == 1 else f"{label}, {_title(task)}"
            for one in here:
                _scatter(grid[row, column], one, title)
            if not here:
                _say_missing(grid[row, column], title, "no run")
    return figure


def ablation(found: Members, style: Style) -> Figure:
    """Figure 3 (error over time) above Figure 11 (a scatter for each variant)."""
    groups = found.groups
    figure = Figure(figsize=(3.6 * max(2, len(groups)), 7.8), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.1, 1))
    above, below = halves
    axes = above.subplots()
    error_curves(axes, groups, style, looks(one.label for one in groups))
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    explain(above, style, groups)
    for panel, one in zip(below.subplots(1, len(groups), squeeze=False)[0], groups, strict=True):
        _scatter(panel, one, one.label)
    return figure


def curves(found: Members, style: Style) -> Figure:
    """Figures 4 and 7, left, and 8: scores of evaluations over time."""
    groups = found.groups
    figure, (axes, *explored) = _panels(groups)
    score, names = scores(groups), _names(groups)
    shown = looks(names.values())
    for one in groups:
        series, name = score.of(one.runs), names[id(one)]
        label = with_seeds(name, len(series), len(one.runs))
        curve(axes, series, len(one.runs), style, shown[name], label)
        for panel in explored:
            curve(panel, series_of(one.runs, STATES), len(one.runs), style, shown[name], label)
    within_one(axes, -0.05)
    decorate(axes, "environment steps", "return of an episode", f"{_tasks(groups)}: {score.name}")
    show_steps(axes)
    for panel in explored:
        panel.set_ylim(bottom=0)
        decorate(panel, "environment steps", DISCOVERIES[STATES], "no evaluation has scored")
        show_steps(panel)
    explain(figure, style, groups)
    legend_below(figure)
    return figure


def task_grid(found: Members, style: Style, columns: int) -> Figure:
    """Figures 5 and 6: scores of evaluations, a panel for each task and mode, in its place also if others have no run.

    Args:
        found: What to draw.
        style: How.
        columns: Panels beside each other.
    """
    groups, tasks = found.groups, found.tasks
    drawn = {one.task for one in groups}
    if len(drawn) == 1:
        return one_task(found, style)
    rows = -(-len(tasks) // columns)
    figure = Figure(figsize=(3.5 * columns, 2.7 * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    shown, score = looks(one.label for one in groups), scores(groups)
    for axes in grid.flat[len(tasks) :]:
        axes.set_visible(False)
    for i, (axes, task) in enumerate(zip(grid.flat, tasks, strict=False)):
        here = [one for one in groups if one.task == task]
        if not here:
            _say_missing(axes, _title(task), "no run")
            continue
        for one in here:
            curve(axes, score.of(one.runs), len(one.runs), style, shown[one.label], one.label)
        axes.set_ylim(-0.05, 1.05)
        lowest = drawn.isdisjoint(tasks[i + columns :: columns])
        leftmost = drawn.isdisjoint(tasks[i - i % columns : i])
        beside = f"return, {score.name}" if leftmost else ""
        decorate(axes, "environment steps" if lowest else "", beside, _title(task))
        show_steps(axes)
    explain(figure, style, groups)
    legend_below(figure)
    return figure


def one_task(found: Members, style: Style) -> Figure:
    """A corner of Figure 5 or 6, with room for what was found in training beside the evaluations."""
    groups = found.groups
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    evaluations, goals, states = figure.subplots(1, 3)
    shown, score = looks(one.label for one in groups), scores(groups)
    for one in groups:
        all_series = (score.of(one.runs), goals_so_far(one.runs), series_of(one.runs, STATES))
        for axes, series in zip((evaluations, goals, states), all_series, strict=True):
            curve(axes, series, len(one.runs), style, shown[one.label], one.label)
    evaluations.set_ylim(-0.05, 1.05)
    goals.set_ylim(0, max(1.0, goals.get_ylim()[1]))
    states.set_ylim(bottom=0)
    decorate(evaluations, "environment steps", f"return, {score.name}", _title(groups[0].task))
    decorate(goals, "environment steps", "goals so far, training", "")
    decorate(states, "environment steps", "states seen", "")
    for axes in (evaluations, goals, states):
        show_steps(axes)
    explain(figure, style, groups)
    legend_below(figure)
    return figure


def noise_bars(found: Members, style: Style, key: str, what: str) -> Figure:
    """Figures 4 and 7, right: the score of evaluations averaged over the run, for each level of noise.

    Args:
        found: What to draw.
        style: How.
        key: Of the noise.
        what: The noise in words.
    """
    groups = [one for one in found.groups if is_level(one.first.value(key))]
    if not groups:
        raise UsageError(f"none of the runs has {key}, over which their bars would stand")
    score, names = scores(groups), _names(groups, key)
    heights: dict[str, dict[float, list[float]]] = {}
    seen: dict[str, dict[float, list[float]]] = {}
    for one in groups:
        level = float(one.first.value(key))
        states = [float(series.values[-1]) for series in series_of(one.runs, STATES)]
        heights.setdefault(names[id(one)], {})[level] = score.averages(one.runs)
        seen.setdefault(names[id(one)], {})[level] = states
    figure, (axes, *explored) = _panels(groups)
    bars(axes, heights, style)
    within_one(axes, 0.0)
    decorate(axes, what, score.averaged, f"{_tasks(groups)}: {score.name}")
    for panel in explored:
        bars(panel, seen, style)
        decorate(panel, what, f"{DISCOVERIES[STATES]}, at the end", "no evaluation has scored")
    explain(figure, style, groups)
    legend_below(figure)
    return figure


def buffers(found: Members, style: Style) -> Figure:
    """Figure 8: learning curves, by the size of the coin-flip buffer."""
    key = "bonus.capacity"
    sizes = [
        Group(one.task, f"{one.without(key)}, {one.first.value(key) or 0:,} states", one.runs, {})
        for one in found.groups
    ]
    return curves(found._replace(groups=sizes), style)


FIGURES: dict[str, Callable[[Members, Style], Figure]] = {
    "gridworld_counts": scatters,
    "gridworld_ablation": ablation,
    "gridworld_curves": curves,
    "gridworld_noise": partial(noise_bars, key="env.action_noise", what="probability that an action is replaced"),
    "d4rl": partial(task_grid, columns=3),
    "fetch": partial(task_grid, columns=3),
    "montezuma_curves": curves,
    "montezuma_sticky": partial(
        noise_bars, key="env.sticky", what="probability that a frame repeats the action before"
    ),
    "montezuma_buffer": buffers,
    "taxi_counts": scatters,
    "zero_flips": scatters,
}


def _scatter(axes: Axes, group: Group, title: str) -> None:
    """The newest count tables of a setting's seeds; where there are none, that is said."""
    if tables := newest_tables(group.runs):
        scatter(axes, tables, f"{title}\n{when(tables)}", group.counts)
    else:
        _say_missing(axes, title, "no count table yet")


def _say_missing(axes: Axes, title: str, what: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()
    axes.text(0.5, 0.5, what, transform=axes.transAxes, ha="center", va="center", fontsize=9, color="#777777")


def _panels(groups: Sequence[Group]) -> tuple[Figure, Sequence[Axes]]:
    """A figure with a panel for scores; while all of them are 0, with another for what was seen instead."""
    score = scores(groups)
    scored = any(series.values.any() for one in groups for series in score.of(one.runs))
    columns = 1 if scored or not any(series_of(one.runs, STATES) for one in groups) else 2
    figure = Figure(figsize=(1 + 5 * columns, 4.2), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def _title(task: str) -> str:
    env, _, mode = task.partition(" ")
    return ", ".join(filter(None, [TITLES.get(env, env), mode]))


def _tasks(groups: Sequence[Group]) -> str:
    return "; ".join(dict.fromkeys(_title(one.task) for one in groups))


def _names(groups: Sequence[Group], *keys: str) -> dict[int, str]:
    """What each group is called, but for keys that an axis says; with its task, where there are several."""
    several = len({one.task for one in groups}) > 1
    return {id(one): one.without(*keys) + (f", {_title(one.task)}" if several else "") for one in groups}


def goals_so_far(runs: Sequence[Record]) -> list[Series]:
    """The goals reached in training up to each evaluation."""
    series = []
    for run in runs:
        goals, evaluations = run.goals, run.metrics.get(SCORE)
        if goals is not None and evaluations is not None:
            so_far = np.append(0.0, goals.values)[np.searchsorted(goals.steps, evaluations.steps, side="right")]
            series.append(Series(evaluations.steps, so_far))
    return series
