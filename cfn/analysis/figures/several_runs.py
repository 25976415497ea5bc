"""Figures of `cfn plot` for several runs: for each task, every result, with settings side by side."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from cfn.analysis.figures.common import decorate, put_title, show_steps
from cfn.analysis.figures.counting import count_alike, count_errors, newest_tables, steps_of_tables
from cfn.analysis.figures.legends import add_below, describe_statistic, label_with_seeds, wrap_label
from cfn.analysis.figures.maps import (
    MAX_MAP_SIZE,
    Extent,
    draw_map,
    is_mappable,
    map_extent,
    map_scales,
    read_rooms,
    room_map_figure,
)
from cfn.analysis.figures.panels import (
    Style,
    assign_looks,
    draw_bars,
    draw_curve,
    draw_error_curves,
    draw_scatter_panel,
    limit_to_one,
)
from cfn.analysis.grouping import Group, is_level, swept_keys
from cfn.analysis.scores import scores, series_of
from cfn.runs.reading import CountTable
from cfn.runs.record import DISCOVERIES, ERROR, Record, without_tex

_SETTINGS_PER_FIGURE = 25
"""Settings in one figure of curves; further settings are in further figures."""
_MAX_SCATTERS = 8
"""Settings per task with a scatter: the first ones. Count tables are slow to read and draw."""
_MAX_MAPS = 5
"""Settings per task with a map: the first ones."""
_COLUMNS = 4
"""Scatters side by side."""
_TITLE_WIDTH = 36
"""Letters per line of a panel's title."""


def compare(groups: Sequence[Group], style: Style) -> Iterator[tuple[str, Figure]]:
    """Yield each figure with its file name, task by task: learning curves, bars, count errors, scatters, maps."""
    taken: set[str] = set()
    for name, figure in _all_figures(groups, style):
        free, number = name, 1
        while free.lower() in taken:  # two tasks may differ only in letters that file names do not have
            number += 1
            free = f"{name}-{number}"
        taken.add(free.lower())
        yield free, figure


def compare_over_time(groups: Sequence[Group], style: Style) -> Iterator[tuple[str, Figure]]:
    """Yield learning curves, bars over swept keys and count errors of one task, with their names."""
    yield from _in_parts("curve", groups, lambda part: compare_learning_curves(part, style))
    for key in swept_keys(groups):
        yield f"by_{key}", compare_by_key(key, groups, style)
    counting = [group for group in groups if _has_errors(group)]
    yield from _in_parts("count_error", counting, lambda part: compare_count_errors(part, style))


def compare_rooms(groups: Sequence[Group]) -> Iterator[tuple[str, Figure]]:
    """Yield maps over room images, with their names, for the first settings of one task that have such images."""
    for i, group in enumerate(groups[:_MAX_MAPS], 1):
        run, table = _first_counted(group) or (None, None)
        if run and table and table.states.shape[1] == 3 and (rooms := read_rooms(run.folder)):
            yield f"rooms-{i}", room_map_figure(table, rooms, _one_seed(group, run))


def too_many(groups: Sequence[Group]) -> list[str]:
    """Return a sentence on each task of which some settings have no scatter or map, because there are too many."""
    numbers = Counter(group.task for group in groups)
    limits = f"scatters show at most {_MAX_SCATTERS}, maps the first {_MAX_MAPS}; name fewer folders to see the others"
    return [f"{task} has {number} settings: {limits}" for task, number in numbers.items() if number > _MAX_MAPS]


def compare_learning_curves(groups: Sequence[Group], style: Style) -> Figure:
    """Return a figure of raw scores over environment steps and, if known, of the states and rooms found."""
    found = [metric for metric in DISCOVERIES if any(series_of(group.runs, metric) for group in groups)]
    figure = Figure(figsize=(5.5 + 4.2 * len(found), 4.1), layout="constrained")
    panels = figure.subplots(1, 1 + len(found), squeeze=False)[0]
    looks, score = assign_looks(group.label for group in groups), scores(groups, style.score, style.smoothing)
    for group in groups:
        per_panel = [score.of(group.runs), *(series_of(group.runs, metric) for metric in found)]
        label = label_with_seeds(group.label, max(map(len, per_panel)), len(group.runs))
        for axes, series in zip(panels, per_panel, strict=True):
            draw_curve(axes, series, len(group.runs), style, looks[group.label], label)
    limit_to_one(panels[0], -0.05)
    decorate(panels[0], "environment steps", "return of an episode", f"{groups[0].task}: {score.name}")
    for axes, metric in zip(panels[1:], found, strict=True):
        axes.set_ylim(bottom=0)
        decorate(axes, "environment steps", DISCOVERIES[metric], "Exploration")
    for axes in panels:
        show_steps(axes)
    add_below(figure, describe_statistic(style.stat, groups), score.description)
    return figure


def compare_by_key(key: str, groups: Sequence[Group], style: Style) -> Figure:
    """Return a figure with bars of the score, averaged over the run, for each number that a key has."""
    heights: dict[str, dict[float, list[float]]] = {}
    with_level = [group for group in groups if is_level(group.keys.get(key))]
    score = scores(with_level, style.score)
    for group in with_level:
        heights.setdefault(group.label_without(key), {})[group.keys[key]] = score.averages(group.runs)
    number = sum(map(len, heights.values()))
    figure = Figure(figsize=(float(np.clip(2 + 0.25 * number, 6.5, 16)), 4.1), layout="constrained")
    axes = figure.subplots()
    draw_bars(axes, heights, style)
    limit_to_one(axes, 0.0)
    decorate(axes, without_tex(key), score.averaged, f"{groups[0].task}: {score.name}")
    add_below(figure, describe_statistic(style.stat, with_level), score.description)
    return figure


def compare_count_errors(groups: Sequence[Group], style: Style) -> Figure:
    """Return a figure of the errors over steps of bonuses that estimate counts."""
    figure = Figure(figsize=(6.5, 4.3), layout="constrained")
    axes = figure.subplots()
    errors = count_errors(groups, style.error, style.counted, style.smoothing)
    draw_error_curves(axes, groups, errors, style, assign_looks(group.label for group in groups))
    axes.set_title(f"{groups[0].task}: {axes.get_title().lower()}", fontsize=10)
    add_below(figure, describe_statistic(style.stat, groups), errors.description)
    return figure


def compare_scatters(settings: Sequence[tuple[Group, list[CountTable]]]) -> Figure:
    """Return a figure with a scatter per setting: predicted against true bonus.

    Args:
        settings: Settings of one task, with the newest count table of each seed.
    """
    columns = min(_COLUMNS, len(settings))
    rows = -(-len(settings) // columns)
    figure = Figure(figsize=(max(4.0, 3.4 * columns), 3.6 * rows + 0.3), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(settings) :]:
        axes.set_visible(False)
    for axes, (group, tables) in zip(grid.flat, settings, strict=False):
        title = f"{wrap_label(group.label, _TITLE_WIDTH)}\n{steps_of_tables(tables)}"
        draw_scatter_panel(axes, tables, title, group.estimates_counts)
    put_title(figure, f"{settings[0][0].task}: a point for each visited state, all seeds")
    add_below(figure, count_alike([tables for _, tables in settings], "visits").description, legend=False)
    return figure


def compare_maps(counted: Sequence[tuple[Group, Record, CountTable]]) -> Figure:
    """Return a figure with maps of visits (above) and bonus (below), of one seed per setting.

    Bonuses that estimate counts share one colour scale; every other bonus has its own scale and colour bar.

    Args:
        counted: Settings of one task, each with a run and its count table.
    """
    groups, runs, tables = zip(*counted, strict=True)
    figure = Figure(figsize=(max(4.5, 3.3 * len(groups) + 1), 6.6), layout="constrained")
    grid = figure.subplots(2, len(groups), squeeze=False)
    estimating = [table for table, group in zip(tables, groups, strict=True) if group.estimates_counts]
    (visits_label, visits_scale), _ = map_scales(tables).items()
    _, (bonus_label, bonus_scale) = map_scales(estimating or tables).items()
    extents = _common_extent([map_extent(table, run.config) for table, run in zip(tables, runs, strict=True)])
    for (above, below), (group, run, table), extent in zip(grid.T, counted, extents, strict=True):
        visits = draw_map(above, table, extent, table.counts, visits_scale)
        title = f"{wrap_label(_one_seed(group, run), _TITLE_WIDTH)}\n{steps_of_tables([table])}"
        above.set_title(title, fontsize=9)
        if group.first.bonus == "none":
            below.set_axis_off()
            continue
        scale = bonus_scale if group.estimates_counts else (Normalize(), "magma")
        bonus = draw_map(below, table, extent, table.predicted_bonus, scale)
        if not group.estimates_counts or group is [one for one in groups if one.estimates_counts][-1]:
            figure.colorbar(bonus, ax=below, label=bonus_label, shrink=0.8)
    figure.colorbar(visits, ax=grid[0], label=visits_label, shrink=0.9)
    for axes in grid.flat:
        axes.label_outer()
    put_title(figure, f"{groups[0].task}: visits above, bonus below; grey: no action was taken there")
    return figure


def _all_figures(groups: Sequence[Group], style: Style) -> Iterator[tuple[str, Figure]]:
    """Yield each figure of `compare`; two names may be equal."""
    for task in dict.fromkeys(group.task for group in groups):
        here = [group for group in groups if group.task == task]
        name = _file_name(task)
        yield from ((f"{name}-{_file_name(kind)}", figure) for kind, figure in compare_over_time(here, style))
        with_bonus = [group for group in here if group.first.bonus != "none"][:_MAX_SCATTERS]
        if settings := [(group, newest) for group in with_bonus if (newest := newest_tables(group.runs))]:
            yield f"{name}-scatter", compare_scatters(settings)
        counted = [(group, *one) for group in here[:_MAX_MAPS] if (one := _first_counted(group)) is not None]
        if mapped := [one for one in counted if is_mappable(one[2])]:
            yield f"{name}-maps", compare_maps(mapped)
        yield from ((f"{name}-{kind}", figure) for kind, figure in compare_rooms(here))


def _common_extent(extents: Sequence[Extent]) -> list[Extent]:
    """Return for each map the extent that covers all of them, so that maps can be compared; its own if that is huge."""
    low, high = np.min([one.low for one in extents], axis=0), np.max([one.high for one in extents], axis=0)
    return [Extent(low, high)] * len(extents) if (high - low).max() < MAX_MAP_SIZE else list(extents)


def _in_parts(
    name: str, groups: Sequence[Group], draw: Callable[[Sequence[Group]], Figure]
) -> Iterator[tuple[str, Figure]]:
    """Yield as many figures as are needed to show all settings, with their names."""
    for number, start in enumerate(range(0, len(groups), _SETTINGS_PER_FIGURE), 1):
        yield name if number == 1 else f"{name}-{number}", draw(groups[start : start + _SETTINGS_PER_FIGURE])


def _has_errors(group: Group) -> bool:
    """Return whether the bonus estimates counts and makes errors; true counts make none."""
    return group.estimates_counts and any(series.values.any() for series in series_of(group.runs, ERROR))


def _first_counted(group: Group) -> tuple[Record, CountTable] | None:
    """Return the first seed of a setting that has count tables, with its newest table."""
    return next(((run, tables[0]) for run in group.runs if (tables := newest_tables([run]))), None)


def _file_name(text: str) -> str:
    """Return a text as a file name that every operating system accepts."""
    return re.sub(r"[^\w.-]+", "_", text)[:80]


def _one_seed(group: Group, run: Record) -> str:
    return f"{group.label}, seed {run.seed}"
