"""Panels of figures on several runs: curves with bands, scatters, bars."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cfn.analysis.figures.common import SERIES, decorate, show_steps
from cfn.analysis.figures.counting import COUNTED_STATES, MEASURES, Counted, CountErrors, ErrorMeasure
from cfn.analysis.grouping import Group
from cfn.analysis.scores import Returns
from cfn.analysis.stats import Stat, common_grid, estimate, on_grid
from cfn.runs.reading import CountTable, Series

COLOURS = ("#3366aa", "#dd7711", "#448844", "#aa3344", "#775599", "#777777", "#117788", "#bb8899")
_LINES: tuple[str | tuple[int, tuple[float, ...]], ...] = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1.5, 1)))


class Style(NamedTuple):
    """Choices for drawing several runs: statistic, returns, error and smoothing.

    Attributes:
        stat: Statistic over seeds.
        seeds: Whether to draw each seed, too.
        score: Returns to show.
        error: Count error to show.
        counted: How to count states, if all runs know it.
        smoothing: Number of iterations over which scores and errors are averaged: each one and those before it.
    """

    stat: Stat = "iqm"
    seeds: bool = False
    score: Returns = "eval"
    error: ErrorMeasure = "mse"
    counted: Counted = "visits"
    smoothing: int = 1


class Look(NamedTuple):
    """Colour and dashes of the line of one setting."""

    colour: str
    line: str | tuple[int, tuple[float, ...]]


def assign_looks(labels: Iterable[str]) -> dict[str, Look]:
    """Return a look for each label: different colours first, then different dashes."""
    looks: Iterator[Look] = cycle(Look(colour, line) for line, colour in product(_LINES, COLOURS))
    return dict(zip(dict.fromkeys(labels), looks, strict=False))


def draw_curve(axes: Axes, series: Sequence[Series], runs: int, style: Style, look: Look, label: str) -> None:
    """Draw the statistic over seeds with its interval, dotted where not all seeds have data.

    Args:
        axes: Panel to draw on.
        series: Series of the seeds that have data.
        runs: Number of seeds, including those without data.
        style: Statistic, and whether to draw each seed.
        look: Look of the line.
        label: Label in the legend.
    """
    grid = common_grid(series)
    if not len(grid):
        return
    result = estimate(on_grid(series, grid), style.stat)
    complete = result.runs == runs
    name = SERIES + label
    marker = "o" if len(grid) == 1 else ""
    axes.plot(
        grid,
        np.where(complete, result.centre, np.nan),
        color=look.colour,
        linestyle=look.line,
        marker=marker,
        label=label,
    )
    if not complete.all():
        partly = np.where(_with_neighbours(~complete), result.centre, np.nan)
        axes.plot(grid, partly, ":", color=look.colour, alpha=0.8, label=name)
    if len(series) > 1:
        axes.fill_between(grid, result.low, result.high, color=look.colour, alpha=0.18, linewidth=0, label=name)
    if style.seeds:
        for one in series:
            axes.plot(one.steps, one.values, color=look.colour, linewidth=0.6, alpha=0.5, label=name)


def draw_error_curves(
    axes: Axes, groups: Sequence[Group], errors: CountErrors, style: Style, looks: Mapping[str, Look]
) -> None:
    """Draw Figure 3: the error of each bonus over steps, and the error that a perfect network would have.

    Args:
        axes: Panel to draw on.
        groups: Settings to draw.
        errors: Errors of the settings.
        style: Statistic, and whether to draw each seed.
        looks: Look of each setting, by label.
    """
    floors = {group.label: floor for group in groups if (floor := errors.floor(group.runs))}
    for group in groups:
        if series := errors.of(group.runs):
            draw_curve(axes, series, len(group.runs), style, looks[group.label], group.label)
    for label, floor in floors.items():
        grid = common_grid(floor)
        colour = looks[label].colour if len(floors) > 1 else "black"
        centre = estimate(on_grid(floor, grid), "mean").centre
        name = f"{SERIES}{label}, floor"
        axes.plot(grid, centre, "_" if len(grid) == 1 else "--", color=colour, linewidth=1, label=name)
    if floors:
        axes.plot([], [], "--", color="black", linewidth=1, label="floor: a perfect network, these coins")
    if axes.dataLim.minposy < np.inf and axes.dataLim.y0 > 0:
        axes.set_yscale("log")
    decorate(axes, "environment steps", MEASURES[errors.measure], f"Count error, over {COUNTED_STATES[errors.counted]}")
    show_steps(axes)


def draw_scatter_panel(axes: Axes, tables: Sequence[CountTable], title: str, estimates_counts: bool) -> None:
    """Draw Figure 2: predicted against true bonus of every state, all seeds in one panel, the first seed darker.

    Args:
        axes: Panel to draw on.
        tables: Count table of each seed.
        title: Title of the panel.
        estimates_counts: Whether the bonus estimates 1 / sqrt(N), the dashed line. Other bonuses have their own scale.
    """
    low, top = 0.0, 1.0 if estimates_counts else 0.0
    for i, table in enumerate(tables):
        alpha = 0.5 if i == 0 else 0.25
        axes.plot(table.true_bonus, table.predicted_bonus, ".", color=COLOURS[0], alpha=alpha, markersize=3)
        low = min(low, float(table.predicted_bonus.min(initial=0.0)))
        top = max(top, float(table.predicted_bonus.max(initial=0.0)))
    if estimates_counts:
        axes.plot([0, 1], [0, 1], "--", color="black", linewidth=1)
    axes.set_xlim(0, 1.03)
    axes.set_ylim(1.05 * low, 1.05 * (top or 1.0))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])  # few ticks: they take most of the time in figures with many panels
    axes.yaxis.set_major_locator(MaxNLocator(5))
    decorate(axes, "true bonus  $1/\\sqrt{N(s)}$", "predicted bonus", title)


def draw_bars(axes: Axes, heights: Mapping[str, Mapping[float, Sequence[float]]], style: Style) -> None:
    """Draw a bar for each label and level; a level without runs is a gap.

    Args:
        axes: Panel to draw on.
        heights: One number per run, by label and level.
        style: Statistic, and whether to draw each seed.
    """
    levels = sorted({level for by_level in heights.values() for level in by_level})
    width = 0.8 / max(len(heights), 1)
    for i, (label, look) in enumerate(assign_looks(heights).items()):
        runs = [np.array(heights[label].get(level, [np.nan]), float)[:, None] for level in levels]
        results = [estimate(values, style.stat) for values in runs]
        centre, low, high = np.array([(float(r.centre[0]), float(r.low[0]), float(r.high[0])) for r in results]).T
        places = np.arange(len(levels)) + (i - (len(heights) - 1) / 2) * width
        error = np.maximum(0.0, [centre - low, high - centre])  # NaN for a single run: its interval is unknown
        axes.bar(places, centre, 0.94 * width, yerr=error, color=look.colour, label=label, capsize=3)
        if style.seeds:
            for place, values in zip(places, runs, strict=True):
                axes.plot(np.full(len(values), place), values, ".", color="black", markersize=3, alpha=0.5)
    names = [f"{level:,.0f}" if level >= 1000 and level == round(level) else f"{level:g}" for level in levels]
    axes.set_xticks(range(len(levels)), names)
    if sum(map(len, names)) > 50:  # horizontal names would overlap
        axes.tick_params("x", rotation=90)


def limit_to_one(axes: Axes, low: float) -> None:
    """Set the y axis from `low` to 1 if all scores are between 0 and 1."""
    if 0 <= axes.dataLim.y1 <= 1 and axes.dataLim.y0 >= -0.01:
        axes.set_ylim(low, 1.05)


def _with_neighbours(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the mask extended by one point on both sides, so that solid and dotted lines meet."""
    wide = mask.copy()
    wide[1:] |= mask[:-1]
    wide[:-1] |= mask[1:]
    return wide
