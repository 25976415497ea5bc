"""All bonuses side by side: goals found in training, distinct states seen, and steps until the first goal."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cfn.analysis.experiments import Members
from cfn.analysis.figures.common import decorate
from cfn.analysis.figures.legends import add_below, describe_statistic
from cfn.analysis.figures.panels import Style, assign_looks
from cfn.analysis.figures.titles import names_of
from cfn.analysis.grouping import Group, is_level
from cfn.analysis.markdown import markdown_table, with_interval
from cfn.analysis.stats import estimate
from cfn.runs.record import SPEED, STATES, Record

NOISE = "env.action_noise"
CENSORED = "a run without a goal counts with all of its steps"


class Measure(NamedTuple):
    """A number per run.

    Attributes:
        title: Name.
        of: Function that returns it for a run; NaN if unknown.
    """

    title: str
    of: Callable[[Record], float]


def goals(run: Record) -> float:
    """Return the number of goals reached in training; NaN if no episode has ended."""
    return float(run.goals.values[-1]) if run.goals is not None and len(run.goals.values) else np.nan


def first_goal(run: Record) -> float:
    """Return the step at which the first goal was reached; without one, the last step of the run."""
    if run.goals is None or not (run.goals.values > 0).any():
        return run.last_step
    return float(run.goals.steps[np.argmax(run.goals.values > 0)])


def last_of(metric: str) -> Callable[[Record], float]:
    """Return a function that returns the last value of a metric."""
    return lambda run: float(run.metrics[metric].values[-1]) if metric in run.metrics else np.nan


MEASURES = (
    Measure("goals found in training", goals),
    Measure("distinct states seen", last_of(STATES)),
    Measure("steps until the first goal", first_goal),
)


def family_figure(found: Members, style: Style) -> Figure:
    """Return a panel per measure: a row per bonus, a colour per level of action noise, one point with its interval.

    Args:
        found: Runs of the experiment.
        style: Statistic over seeds, and whether to draw each seed.
    """
    rows, levels = _rows(found.groups)
    looks = assign_looks(levels)
    figure = Figure(figsize=(12, 1.2 + 0.36 * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(MEASURES), sharey=True)
    for axes, measure in zip(panels, MEASURES, strict=True):
        for i, level in enumerate(levels):
            offset = (i - (len(levels) - 1) / 2) * 0.25
            here = [(y + offset, by_level[level]) for y, by_level in enumerate(rows.values()) if level in by_level]
            _draw(axes, here, measure, looks[level].colour, level, style)
        axes.set_yticks(range(len(rows)), list(rows))
        decorate(axes, measure.title, "", "")
    panels[0].invert_yaxis()
    add_below(figure, describe_statistic(style.stat, found.groups), CENSORED)
    return figure


def family_table(found: Members, style: Style) -> str:
    """Return a table in Markdown: every bonus at every level of noise, with all measures and the speed."""
    rows, levels = _rows(found.groups)
    lines = []
    for name, by_level in rows.items():
        for level, one in ((level, by_level[level]) for level in levels if level in by_level):
            cells = [_cell(one, measure.of, style) for measure in MEASURES]
            reached = sum(goals(run) > 0 for run in one.runs)
            speed = _cell(one, last_of(SPEED), style)
            lines.append((name, level, f"{reached} of {len(one.runs)}", *cells, speed))
    header = ("bonus", "setting", "seeds with a goal", *(measure.title for measure in MEASURES), "steps per second")
    note = f"{describe_statistic(style.stat, found.groups)}; {CENSORED}".capitalize()
    return f"{markdown_table(header, lines, names=2)}\n\n{note}.\n"


def _rows(groups: Sequence[Group]) -> tuple[dict[str, dict[str, Group]], list[str]]:
    """Return the groups by name and level of noise, and the levels in ascending order."""
    names = names_of(groups, NOISE)
    rows: dict[str, dict[str, Group]] = {}
    numbers: dict[str, float] = {}
    for one in groups:
        value = one.first.value(NOISE)
        noise = float(value) if is_level(value) else 0.0
        level = f"action noise {noise:g}"
        numbers[level] = noise
        rows.setdefault(names[id(one)], {})[level] = one
    return rows, sorted(numbers, key=numbers.__getitem__)


def _draw(
    axes: Axes, places: Sequence[tuple[float, Group]], measure: Measure, colour: str, label: str, style: Style
) -> None:
    """Draw one level of noise: a point with its interval at each place."""
    for y, one in places:
        values = np.array([measure.of(run) for run in one.runs])
        found = estimate(values[:, None], style.stat)
        centre, low, high = (float(number[0]) for number in found[:3])
        error = [[max(centre - low, 0.0)], [max(high - centre, 0.0)]] if not np.isnan(low) else None
        axes.errorbar([centre], [y], xerr=error, fmt="o", markersize=4, color=colour, capsize=2, label=label)
        if style.seeds:
            axes.plot(values, [y] * len(values), ".", markersize=3, alpha=0.5, color=colour)


def _cell(one: Group, of: Callable[[Record], float], style: Style) -> str:
    found = estimate(np.array([of(run) for run in one.runs])[:, None], style.stat)
    return with_interval(*(float(number[0]) for number in found[:3]))
