"""The search for the scale of bonuses: score against `bonus.scale`, and a table of all settings.

The score of a setting is its return, averaged over the run. The best setting of a task, agent and bonus is the one with
the highest score over seeds.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cfn.analysis.experiments import Members
from cfn.analysis.figures.common import decorate
from cfn.analysis.figures.legends import add_below, describe_statistic
from cfn.analysis.figures.panels import Look, Style, assign_looks
from cfn.analysis.figures.titles import title_of
from cfn.analysis.grouping import Group, is_level
from cfn.analysis.markdown import markdown_table
from cfn.analysis.scores import Scores, scores, unequal
from cfn.analysis.stats import estimate
from cfn.numbers import readable

SCALE = "bonus.scale"
HEADER = ("environment", "method", SCALE, "score", "interval", "seeds", "best")

_PANELS_PER_ROW = 3


class Result(NamedTuple):
    """The result of one setting.

    Attributes:
        group: The setting.
        line: Name of the setting without its scale.
        scale: Value of `bonus.scale`; None if the bonus has none, or if a logarithmic axis has no place for it.
        averages: Score of each seed that has one.
        centre: Statistic over seeds; NaN if there is no score.
        low: Lower end of its interval; NaN if unknown.
        high: Upper end of its interval; NaN if unknown.
        best: Whether no setting of the same agent and bonus has a higher score, and some have a lower one.
    """

    group: Group
    line: str
    scale: float | None
    averages: list[float]
    centre: float
    low: float
    high: float
    best: bool = False


def search_results(groups: Sequence[Group], score: Scores, style: Style) -> list[Result]:
    """Return the results of the settings of one task, line by line, sorted by scale.

    Args:
        groups: Settings of one task.
        score: Their score.
        style: Statistic over seeds.
    """
    results = []
    for one in groups:
        averages = score.averages(one.runs)
        found = estimate(np.array(averages or [np.nan])[:, None], style.stat)
        value = one.first.value(SCALE)
        scale = float(value) if is_level(value) and value > 0 else None
        line = one.label if scale is None else one.label_without(SCALE)
        centre, low, high = (float(number[0]) for number in found[:3])
        results.append(Result(one, line, scale, averages, centre, low, high))
    lines = list(dict.fromkeys(result.line for result in results))
    results.sort(key=lambda result: (lines.index(result.line), result.scale or 0.0))
    return _mark_best(results)


def search_figure(found: Members, style: Style) -> Figure:
    """Return the score against `bonus.scale`: a panel per task, a line per bonus and per other searched values.

    Settings without a scale are horizontal lines. A star marks the best setting of each agent and bonus.

    Args:
        found: Runs of the experiment.
        style: What to draw, and how.
    """
    tasks = found.tasks
    columns = min(_PANELS_PER_ROW, len(tasks))
    rows = -(-len(tasks) // columns)
    figure = Figure(figsize=(max(6.0, 4.2 * columns), 3.6 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(tasks) :]:
        axes.set_visible(False)
    per_task = [_of_task(found, task, style) for task in tasks]
    looks = assign_looks(result.line for _, results in per_task for result in results)
    for axes, task, (score, results) in zip(grid.flat, tasks, per_task, strict=False):
        for line in dict.fromkeys(result.line for result in results):
            _draw_line(axes, [result for result in results if result.line == line], looks[line], style)
        if any(result.scale is not None for result in results):
            axes.set_xscale("log")
        decorate(axes, SCALE, score.averaged, title_of(task))
    if any(result.best for _, results in per_task for result in results):
        grid[0, 0].plot([], [], "*", color="black", markersize=10, label="best setting of an agent and bonus")
    described = dict.fromkeys(score.description for score, _ in per_task)
    add_below(figure, describe_statistic(style.stat, found.groups), *described)
    return figure


def search_table(found: Members, style: Style) -> str:
    """Return a table in Markdown: the score of every setting, its interval and its seeds, with the best ones marked."""
    rows: list[tuple[str, ...]] = []
    described: dict[str, None] = {}
    for task in found.tasks:
        score, results = _of_task(found, task, style)
        described[f"{score.averaged} ({score.description})".replace("\n", " ")] = None
        rows += [_cells(task, result) for result in results]
    meaning = f"Score: {'; '.join(described)}; {describe_statistic(style.stat, found.groups)}."
    best = "Best: no setting of the same environment, agent and bonus has a higher score, and some have a lower one."
    remarks = "".join(f"\n{sentence}.\n" for sentence in unequal(found.groups, style.score))
    return f"{markdown_table(HEADER, rows, names=2)}\n\n{meaning} {best}\n{remarks}"


def _of_task(found: Members, task: str, style: Style) -> tuple[Scores, list[Result]]:
    here = [one for one in found.groups if one.task == task]
    score = scores(here, style.score)
    return score, search_results(here, score, style)


def _mark_best(results: Sequence[Result]) -> list[Result]:
    """Return the results with the best of each agent and bonus marked; where all are equal, none is."""
    marked = []
    for result in results:
        names = result.group.first.agent, result.group.first.bonus
        rivals = [other for other in results if (other.group.first.agent, other.group.first.bonus) == names]
        known = [rival.centre for rival in rivals if rival.averages]
        equal = len(known) > 1 and min(known) == max(known)
        marked.append(result._replace(best=bool(result.averages) and result.centre == max(known) and not equal))
    return marked


def _draw_line(axes: Axes, results: Sequence[Result], look: Look, style: Style) -> None:
    """Draw the settings of one line: points with intervals by scale, or a horizontal line if there is no scale."""
    colour: dict[str, Any] = {"color": look.colour}
    with_scale = [result for result in results if result.scale is not None]
    if with_scale:
        scales, centres, lows, highs = np.array([(r.scale, r.centre, r.low, r.high) for r in with_scale], float).T
        errors = np.maximum(0.0, [centres - lows, highs - centres])  # NaN for a single seed: its interval is unknown
        axes.plot(scales, centres, linestyle=look.line, marker="o", markersize=4, label=results[0].line, **colour)
        axes.errorbar(scales, centres, errors, fmt="none", capsize=3, **colour)
    for result in results:
        # Without a scale, marks are at the right end of the horizontal line.
        transform = axes.transData if result.scale is not None else axes.get_yaxis_transform()
        place = {"transform": transform, "linestyle": "", "clip_on": False, **colour}
        x = 1.0 if result.scale is None else result.scale
        if result.scale is None and result.averages:
            axes.axhline(result.centre, linestyle=look.line, linewidth=1, label=result.line, **colour)
            if not np.isnan(result.low):
                axes.axhspan(result.low, result.high, alpha=0.12, linewidth=0, **colour)
        if style.seeds:
            axes.plot([x] * len(result.averages), result.averages, marker=".", markersize=3, alpha=0.6, **place)
        if result.best:
            axes.plot([x], [result.centre], marker="*", markersize=13, zorder=5, **place)


def _cells(task: str, result: Result) -> tuple[str, ...]:
    """Return the cells of a row, with the columns of `HEADER`."""
    value = result.group.first.value(SCALE)
    total, drawn = len(result.group.runs), len(result.averages)
    return (
        task,
        result.line,
        f"{value:g}" if is_level(value) else "",
        readable(result.centre) if result.averages else "",
        "" if np.isnan(result.low) else f"{readable(result.low)} to {readable(result.high)}",
        f"{total}" if drawn == total else f"{drawn} of {total}",
        "best" if result.best else "",
    )
