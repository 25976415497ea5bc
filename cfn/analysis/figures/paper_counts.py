"""Figures 2, 3, 9, 10 and 11 of the paper: bonuses compared with true counts."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cfn.analysis.experiments import Members
from cfn.analysis.figures.common import mark_missing
from cfn.analysis.figures.counting import CountTables, count_alike, count_errors, leave_out, steps_of_tables
from cfn.analysis.figures.legends import add_below, describe_statistic
from cfn.analysis.figures.panels import Style, assign_looks, draw_error_curves, draw_scatter_panel
from cfn.analysis.figures.titles import title_of
from cfn.analysis.grouping import Group
from cfn.runs.reading import CountTable
from cfn.runs.record import Record


def paper_scatters(found: Members, style: Style, without_goal: bool = False) -> Figure:
    """Return Figures 2, 9 and 10: predicted against true bonus, a column per method and a row per environment.

    Args:
        found: Runs of the experiment.
        style: How to count.
        without_goal: Whether to leave out the goal of Visual Gridworld.
    """
    groups, tasks = found.groups, found.tasks
    tables = _newest_tables(groups, style, without_goal)
    methods = list(dict.fromkeys(one.label for one in groups))
    figure = Figure(figsize=(3.6 * len(methods), 3.6 * len(tasks)), layout="constrained")
    grid = figure.subplots(len(tasks), len(methods), squeeze=False)
    for row, task in enumerate(tasks):
        for column, label in enumerate(methods):
            here = [i for i, one in enumerate(groups) if (one.label, one.task) == (label, task)]
            title = label if len(tasks) == 1 else f"{label}, {title_of(task)}"
            for i in here:
                _draw_scatter(grid[row, column], groups[i], tables.of[i], title)
            if not here:
                mark_missing(grid[row, column], title, "no run")
    goal = ["the goal cell is left out"] if without_goal else []
    add_below(figure, _describe_points(groups), tables.description, *goal, legend=False)
    return figure


def paper_ablation(found: Members, style: Style) -> Figure:
    """Return Figure 3 (error over steps) above Figure 11 (a scatter per variant)."""
    groups = found.groups
    figure = Figure(figsize=(3.6 * max(2, len(groups)), 7.8), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.1, 1))
    above, below = halves
    axes = above.subplots()
    errors = count_errors(groups, style.error, style.counted, style.smoothing)
    draw_error_curves(axes, groups, errors, style, assign_looks(one.label for one in groups))
    if axes.get_legend_handles_labels()[0]:  # no run may have an error yet
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    tables = _newest_tables(groups, style)
    panels = below.subplots(1, len(groups), squeeze=False)[0]
    for panel, one, newest in zip(panels, groups, tables.of, strict=True):
        _draw_scatter(panel, one, newest, one.label)
    curves = (f"above: {errors.description}", describe_statistic(style.stat, groups))
    add_below(figure, *curves, f"below: {_describe_points(groups)}", tables.description, legend=False)
    return figure


def _newest_tables(groups: Sequence[Group], style: Style, without_goal: bool = False) -> CountTables:
    """Return the newest count tables of each group, counted as the style says, or by visits if some lack arrivals."""

    def newest(run: Record) -> CountTable | None:
        table, size = run.newest_table(), run.value("env.size")
        if table is None or not without_goal or not isinstance(size, int):
            return table
        return leave_out(table, (size - 1, size - 1))  # as in the published Figure 2

    return count_alike([[t for run in one.runs if (t := newest(run)) is not None] for one in groups], style.counted)


def _draw_scatter(axes: Axes, group: Group, tables: Sequence[CountTable], title: str) -> None:
    """Draw the count tables of a setting's seeds, or a text if there are none."""
    if tables:
        draw_scatter_panel(axes, tables, f"{title}\n{steps_of_tables(tables)}", group.estimates_counts)
    else:
        mark_missing(axes, title, "no count table yet")


def _describe_points(groups: Sequence[Group]) -> str:
    most = max(len(one.runs) for one in groups)
    return "a point per state" + (f" and seed ({most} seeds, the first one darker)" if most > 1 else ", 1 seed")
