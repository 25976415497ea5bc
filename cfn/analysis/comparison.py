"""What `cfn plot` draws of any runs: for each task, everything that they hold, side by side."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from cfn.analysis.axes import decorate, put_title, show_steps
from cfn.analysis.files import CountTable
from cfn.analysis.groups import Group, is_level, swept
from cfn.analysis.maps import Extent, extent, is_map, map_scales, paint, read_rooms, room_maps
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
    wrapped,
)
from cfn.analysis.runs import DISCOVERIES, ERROR, Record, plain

_ON_A_PAGE = 25
"""Settings in one picture; more go on in the next."""
_SCATTERS = 8
_MAPS = 5
"""Settings of a task that have a panel of their own, the first ones: more are not read, and take their time."""
_COLUMNS = 4
_TITLE = 36
"""Letters in a line of a panel's title."""


def compare(groups: Sequence[Group], style: Style) -> Iterator[tuple[str, Figure]]:
    """The pictures of each task, with a name for each: learning curves, bars, count errors, scatters, maps."""
    for task in dict.fromkeys(group.task for group in groups):
        here = [group for group in groups if group.task == task]
        name = _file_name(task)
        yield from ((f"{name}-{_file_name(kind)}", figure) for kind, figure in over_time(here, style))
        judged = [group for group in here if group.first.bonus != "none"][:_SCATTERS]
        if settings := [(group, newest) for group in judged if (newest := newest_tables(group.runs))]:
            yield f"{name}-scatter", scatters(settings)
        counted = [(group, *one) for group in here[:_MAPS] if (one := _counted(group)) is not None]
        if mapped := [one for one in counted if is_map(one[2])]:
            yield f"{name}-maps", maps(mapped)
        yield from ((f"{name}-{kind}", figure) for kind, figure in rooms_of(here))


def over_time(groups: Sequence[Group], style: Style) -> Iterator[tuple[str, Figure]]:
    """Of one task: learning curves, bars over swept keys, count errors."""
    yield from pages("curve", groups, lambda page: learning_curves(page, style))
    for key in swept(groups):
        yield f"by_{key}", bars_over(key, groups, style)
    counting = [group for group in groups if has_errors(group)]
    yield from pages("count_error", counting, lambda page: count_errors(page, style))


def rooms_of(groups: Sequence[Group]) -> Iterator[tuple[str, Figure]]:
    """Of one task: maps of visits and bonus over the rooms that the first settings have images of."""
    for i, group in enumerate(groups[:_MAPS], 1):
        run, table = _counted(group) or (None, None)
        if run and table and table.states.shape[1] == 3 and (rooms := read_rooms(run.folder)):
            yield f"rooms-{i}", room_maps(table, rooms, _one_seed(group, run))


def too_many(groups: Sequence[Group]) -> list[str]:
    """A sentence on each task with more settings than have panels of their own."""
    numbers = Counter(group.task for group in groups)
    drawn = f"scatters are drawn of at most {_SCATTERS}, maps of the first {_MAPS}; name fewer folders to see others"
    return [f"{task} has {number} settings: {drawn}" for task, number in numbers.items() if number > _MAPS]


def learning_curves(groups: Sequence[Group], style: Style) -> Figure:
    """Raw score over environment steps and, beside it, how many states and rooms were found."""
    found = [metric for metric in DISCOVERIES if any(series_of(group.runs, metric) for group in groups)]
    figure = Figure(figsize=(5.5 + 4.2 * len(found), 4.1), layout="constrained")
    panels = figure.subplots(1, 1 + len(found), squeeze=False)[0]
    shown, score = looks(group.label for group in groups), scores(groups)
    for group in groups:
        several = [score.of(group.runs), *(series_of(group.runs, metric) for metric in found)]
        label = with_seeds(group.label, max(map(len, several)), len(group.runs))
        for axes, series in zip(panels, several, strict=True):
            curve(axes, series, len(group.runs), style, shown[group.label], label)
    within_one(panels[0], -0.05)
    decorate(panels[0], "environment steps", "return of an episode", f"{groups[0].task}: {score.name}")
    for axes, metric in zip(panels[1:], found, strict=True):
        axes.set_ylim(bottom=0)
        decorate(axes, "environment steps", DISCOVERIES[metric], "Exploration")
    for axes in panels:
        show_steps(axes)
    explain(figure, style, groups)
    legend_below(figure)
    return figure


def bars_over(key: str, groups: Sequence[Group], style: Style) -> Figure:
    """The score averaged over the run, for each value of a key that was swept; what is no number has no place there."""
    heights: dict[str, dict[float, list[float]]] = {}
    standing = [group for group in groups if is_level(group.keys.get(key))]
    score = scores(standing)
    for group in standing:
        heights.setdefault(group.without(key), {})[group.keys[key]] = score.averages(group.runs)
    number = sum(map(len, heights.values()))
    figure = Figure(figsize=(float(np.clip(2 + 0.25 * number, 6.5, 16)), 4.1), layout="constrained")
    axes = figure.subplots()
    bars(axes, heights, style)
    within_one(axes, 0.0)
    decorate(axes, plain(key), score.averaged, f"{groups[0].task}: {score.name}")
    explain(figure, style, standing)
    legend_below(figure)
    return figure


def count_errors(groups: Sequence[Group], style: Style) -> Figure:
    """The error of those bonuses that mean to count, over time."""
    figure = Figure(figsize=(6.5, 4.3), layout="constrained")
    axes = figure.subplots()
    error_curves(axes, groups, style, looks(group.label for group in groups))
    axes.set_title(f"{groups[0].task}: count error, over visited states", fontsize=10)
    explain(figure, style, groups)
    legend_below(figure)
    return figure


def scatters(settings: Sequence[tuple[Group, list[CountTable]]]) -> Figure:
    """Predicted against true bonus, a panel for each setting, at the newest moment of each seed."""
    columns = min(_COLUMNS, len(settings))
    rows = -(-len(settings) // columns)
    figure = Figure(figsize=(max(4.0, 3.4 * columns), 3.6 * rows + 0.3), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(settings) :]:
        axes.set_visible(False)
    for axes, (group, tables) in zip(grid.flat, settings, strict=False):
        scatter(axes, tables, f"{wrapped(group.label, _TITLE)}\n{when(tables)}", group.counts)
    put_title(figure, f"{settings[0][0].task}: a point for each visited state, all seeds")
    return figure


def maps(counted: Sequence[tuple[Group, Record, CountTable]]) -> Figure:
    """Visits above and bonus below over positions, of one seed of each setting.

    Bonuses that mean to count are on one scale; others, whose scale is their own, have a bar of their own.
    """
    groups, runs, tables = zip(*counted, strict=True)
    figure = Figure(figsize=(max(4.5, 3.3 * len(groups) + 1), 6.6), layout="constrained")
    grid = figure.subplots(2, len(groups), squeeze=False)
    visits, bonus = map_scales([t for t, group in zip(tables, groups, strict=True) if group.counts] or tables).items()
    everywhere = map_scales(tables)[visits[0]]
    extents = [extent(table, run.config) for table, run in zip(tables, runs, strict=True)]
    low, high = np.min([one.low for one in extents], axis=0), np.max([one.high for one in extents], axis=0)
    shown = Extent(low, high)
    for (above, below), (group, run, table) in zip(grid.T, counted, strict=True):
        seen = paint(above, table, shown, table.counts, everywhere)
        above.set_title(f"{wrapped(_one_seed(group, run), _TITLE)}\n{when([table])}", fontsize=9)
        if group.first.bonus == "none":
            below.set_axis_off()
            continue
        image = paint(below, table, shown, table.predicted_bonus, bonus[1] if group.counts else (Normalize(), "magma"))
        if not group.counts or group is [one for one in groups if one.counts][-1]:
            figure.colorbar(image, ax=below, label=bonus[0], shrink=0.8)
    figure.colorbar(seen, ax=grid[0], label=visits[0], shrink=0.9)
    for axes in grid.flat:
        axes.label_outer()
    put_title(figure, f"{groups[0].task}: visits above, bonus below; grey: no action was taken there")
    return figure


def pages(
    name: str, groups: Sequence[Group], draw: Callable[[Sequence[Group]], Figure]
) -> Iterator[tuple[str, Figure]]:
    """As many pictures as it takes to show all settings."""
    for number, start in enumerate(range(0, len(groups), _ON_A_PAGE), 1):
        yield name if number == 1 else f"{name}-{number}", draw(groups[start : start + _ON_A_PAGE])


def has_errors(group: Group) -> bool:
    """Whether its bonus means to count and can be wrong, as the oracle cannot."""
    return group.counts and any(series.values.any() for series in series_of(group.runs, ERROR))


def _counted(group: Group) -> tuple[Record, CountTable] | None:
    """The first of a setting's seeds that has a count table, and its newest one."""
    return next(((run, tables[0]) for run in group.runs if (tables := newest_tables([run]))), None)


def _file_name(text: str) -> str:
    """What a picture of it can be called, on any system."""
    return re.sub(r"[^\w.-]+", "_", text)[:80]


def _one_seed(group: Group, run: Record) -> str:
    return f"{group.label}, seed {run.seed}"
