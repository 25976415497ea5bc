"""What pictures of several runs are made of: a curve with its band, a scatter, bars, a legend that has room."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import cycle, product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from cfn.analysis.axes import decorate, moving_mean, show_steps
from cfn.analysis.files import CountTable, Series
from cfn.analysis.groups import Group
from cfn.analysis.runs import ERROR, FLOOR, SCORE, Record
from cfn.analysis.stats import Stat, average, common_grid, estimate, meaning, on_grid

COLOURS = ("#3366aa", "#dd7711", "#448844", "#aa3344", "#775599", "#777777", "#117788", "#bb8899")
_LINES: tuple[str | tuple[int, tuple[float, ...]], ...] = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1.5, 1)))

_SMOOTHED = 20
"""Training returns of single episodes, where there are no evaluations, are means of so many."""


class Style(NamedTuple):
    """How seeds become a line: which statistic, and whether each is shown beside it."""

    stat: Stat = "iqm"
    seeds: bool = False


class Look(NamedTuple):
    """What one setting's line looks like."""

    colour: str
    line: str | tuple[int, tuple[float, ...]]


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """A look for each label: other colours first, then other dashes."""
    kinds: Iterator[Look] = cycle(Look(colour, line) for line, colour in product(_LINES, COLOURS))
    return dict(zip(dict.fromkeys(labels), kinds, strict=False))


def curve(axes: Axes, series: Sequence[Series], runs: int, style: Style, look: Look, label: str) -> None:
    """The statistic over seeds and its interval; dotted where some of the seeds have not come, or were not yet.

    Args:
        axes: The panel.
        series: Of those seeds that have any.
        runs: How many seeds there are.
        style: Which statistic.
        look: Of the line.
        label: In the legend.
    """
    grid = common_grid(series)
    if not len(grid):
        return
    result = estimate(on_grid(series, grid), style.stat)
    everyone = result.runs == runs
    marker = "o" if len(grid) == 1 else ""
    axes.plot(
        grid,
        np.where(everyone, result.centre, np.nan),
        color=look.colour,
        linestyle=look.line,
        marker=marker,
        label=label,
    )
    if not everyone.all():
        axes.plot(grid, np.where(_with_neighbours(~everyone), result.centre, np.nan), ":", color=look.colour, alpha=0.8)
    if len(series) > 1:
        axes.fill_between(grid, result.low, result.high, color=look.colour, alpha=0.18, linewidth=0)
    if style.seeds:
        for one in series:
            axes.plot(one.steps, one.values, color=look.colour, linewidth=0.6, alpha=0.5)


def error_curves(axes: Axes, groups: Sequence[Group], style: Style, shown: Mapping[str, Look]) -> None:
    """Figure 3: how far each bonus is from the true one, over the floor that coins leave whatever a network does."""
    floors = {group.label: floor for group in groups if (floor := series_of(group.runs, FLOOR))}
    for group in groups:
        if errors := series_of(group.runs, ERROR):
            curve(axes, errors, len(group.runs), style, shown[group.label], group.label)
    for label, floor in floors.items():
        grid = common_grid(floor)
        colour = shown[label].colour if len(floors) > 1 else "black"
        centre = estimate(on_grid(floor, grid), "mean").centre
        axes.plot(grid, centre, "_" if len(grid) == 1 else "--", color=colour, linewidth=1)
    if floors:
        axes.plot([], [], "--", color="black", linewidth=1, label="floor: a perfect network, these coins")
    if axes.dataLim.minposy < np.inf and axes.dataLim.y0 > 0:
        axes.set_yscale("log")
    decorate(axes, "environment steps", "mean squared error", "Count error, over visited states")
    show_steps(axes)


def scatter(axes: Axes, tables: Sequence[CountTable], title: str, counts: bool) -> None:
    """Figure 2: the states of all seeds together, the first one's darker; a bonus that counts lies on the dashed line.

    Args:
        axes: The panel.
        tables: Of the seeds, at one moment.
        title: What it shows.
        counts: Whether the bonus means to be a count; others are on a scale of their own.
    """
    low, top = 0.0, 1.0 if counts else 0.0
    for i, table in enumerate(tables):
        alpha = 0.5 if i == 0 else 0.25
        axes.plot(table.true_bonus, table.predicted_bonus, ".", color=COLOURS[0], alpha=alpha, markersize=3)
        low = min(low, float(table.predicted_bonus.min(initial=0.0)))
        top = max(top, float(table.predicted_bonus.max(initial=0.0)))
    if counts:
        axes.plot([0, 1], [0, 1], "--", color="black", linewidth=1)
    axes.set_xlim(0, 1.03)
    axes.set_ylim(1.05 * low, 1.05 * (top or 1.0))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])  # few: most of the time that a picture of many panels takes is theirs
    axes.yaxis.set_major_locator(MaxNLocator(5))
    decorate(axes, "true bonus  $1/\\sqrt{N(s)}$", "predicted bonus", title)


def bars(axes: Axes, heights: Mapping[str, Mapping[float, Sequence[float]]], style: Style) -> None:
    """One bar for each label and level, of one number per run; where there is no run, there is a gap."""
    levels = sorted({level for by_level in heights.values() for level in by_level})
    width = 0.8 / max(len(heights), 1)
    for i, (label, look) in enumerate(looks(heights).items()):
        runs = [np.array(heights[label].get(level, [np.nan]), float)[:, None] for level in levels]
        results = [estimate(values, style.stat) for values in runs]
        centre, low, high = np.array([(float(r.centre[0]), float(r.low[0]), float(r.high[0])) for r in results]).T
        places = np.arange(len(levels)) + (i - (len(heights) - 1) / 2) * width
        error = np.maximum(0.0, [centre - low, high - centre])  # NaN where a single run leaves it unknown
        axes.bar(places, centre, 0.94 * width, yerr=error, color=look.colour, label=label, capsize=3)
        if style.seeds:
            for place, values in zip(places, runs, strict=True):
                axes.plot(np.full(len(values), place), values, ".", color="black", markersize=3, alpha=0.5)
    names = [f"{level:,.0f}" if level >= 1000 and level == round(level) else f"{level:g}" for level in levels]
    axes.set_xticks(range(len(levels)), names)
    if sum(map(len, names)) > 50:  # they would run into each other
        axes.tick_params("x", rotation=90)


def within_one(axes: Axes, low: float) -> None:
    """Scores of tasks that pay at most 1 are shown on a scale from 0 to 1."""
    if 0 <= axes.dataLim.y1 <= 1 and axes.dataLim.y0 >= -0.01:
        axes.set_ylim(low, 1.05)


def legend_below(figure: Figure) -> None:
    """A legend of all panels under them, in as many columns as its longest label leaves room for; the figure grows."""
    entries: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if not entries:
        return
    room = int(11 * figure.get_figwidth())  # in letters
    labels, handles = [wrapped(label, room - 8) for label in entries], list(entries.values())
    longest = max(len(line) for label in labels for line in label.splitlines())
    columns = int(np.clip(room // (longest + 6), 1, min(4, len(labels))))
    lines = sum(label.count("\n") for label in labels) + -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + 0.2 * (lines - 1))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def wrapped(label: str, width: int) -> str:
    """A label over several lines of so many letters, cut between what it lists."""
    lines = [""]
    for part in label.split(", "):
        joined = f"{lines[-1]}, {part}" if lines[-1] else part
        if len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(part)
    return ",\n".join(filter(None, lines))


def explain(figure: Figure | SubFigure, style: Style, groups: Sequence[Group]) -> None:
    """Say above everything what lines and bands are, and of how many seeds."""
    seeds = sorted({len(group.runs) for group in groups})
    number = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    said = "1 seed each" if seeds == [1] else f"{meaning(style.stat, seeds[-1])} over {number} seeds"
    figure.suptitle(said, fontsize=9, color="#555555")


def with_seeds(name: str, drawn: int, number: int) -> str:
    """A setting's name in a legend, and of how many of its seeds the line is."""
    of = f"{number}" if drawn == number else f"{drawn} of {number}"
    return f"{name} ({of} seed{'s' * (number > 1)})"


def series_of(runs: Sequence[Record], metric: str) -> list[Series]:
    """A metric of those runs that have it."""
    return [run.metrics[metric] for run in runs if metric in run.metrics]


@dataclass(frozen=True)
class Scores:
    """What counts as the score in one picture or table.

    Attributes:
        name: What it is called.
        of: Its series of runs, of those that have any.
        groups: All that are compared there.
    """

    name: str
    of: Callable[[Sequence[Record]], list[Series]]
    groups: Sequence[Group]

    @cached_property
    def _ends(self) -> set[float]:
        return {float(series.steps[-1]) for group in self.groups for series in self.of(group.runs)}

    def averages(self, runs: Sequence[Record]) -> list[float]:
        """Each run's score, averaged up to the step that all have come to: only so can averages be compared."""
        return [average(series, min(self._ends)) for series in self.of(runs)]

    @property
    def averaged(self) -> str:
        """What the averages are, in words."""
        first = f"the first {min(self._ends):,.0f} steps,\nto which all runs have come" if len(self._ends) > 1 else ""
        return f"return, averaged over {first or 'the run'}"


def scores(groups: Sequence[Group]) -> Scores:
    """Raw scores of evaluations or, while none of the groups has any, of training, smoothed: never some of each."""
    if any(series_of(group.runs, SCORE) for group in groups):
        return Scores("evaluations", partial(series_of, metric=SCORE), groups)
    return Scores(f"training, mean of {_SMOOTHED} episodes", _training, groups)


def _training(runs: Sequence[Record]) -> list[Series]:
    training = (run.training for run in runs)
    return [Series(s.steps, moving_mean(s.values, _SMOOTHED)) for s in training if s]


def unequal(groups: Sequence[Group]) -> list[str]:
    """A sentence on each setting that has no evaluations, or whose seeds or whose task's settings end unequally."""
    said = []
    for task in dict.fromkeys(group.task for group in groups):
        here = [group for group in groups if group.task == task]
        ends = {}
        for group in here:
            series = series_of(group.runs, SCORE)
            without, name = len(group.runs) - len(series), f"{group.task}, {group.label}"
            if without == len(group.runs):
                training = scores(here).of(group.runs)
                what = "scores are those of training" if training else "it has no score"
                said.append(f"{name}: there are no evaluations yet; {what}")
                series = training
            elif without:
                said.append(f"{name}: {without} of {len(group.runs)} seeds have no evaluation yet")
            if not series:
                continue
            last, furthest = (end(s.steps[-1] for s in series) for end in (min, max))
            ends[group.label] = furthest
            if max(s.steps[0] for s in series) > last:
                said.append(f"{name}: the seeds have no steps in common; lines are dotted where only some are")
            elif last < furthest:
                between = f"seeds end between steps {last:,.0f} and {furthest:,.0f}"
                said.append(f"{name}: {between}; lines are dotted where only some are")
        if len(set(ends.values())) > 1:
            first, last = min(ends, key=lambda label: ends[label]), max(ends, key=lambda label: ends[label])
            far = f"{first} at step {ends[first]:,.0f}, {last} at {ends[last]:,.0f}"
            said.append(f"{task}: the settings have not come equally far ({far}); averages are over what all have")
    return said


def newest_tables(runs: Sequence[Record]) -> list[CountTable]:
    """The newest count table of each run that has one."""
    return [table for run in runs if (table := run.newest_table()) is not None]


def when(tables: Sequence[CountTable]) -> str:
    """The moment or moments of count tables, in words."""
    first, last = (end(table.step for table in tables) for end in (min, max))
    return f"after {first:,} steps" if first == last else f"after {first:,} to {last:,} steps"


def _with_neighbours(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Also one point on, and one point before, so that lines meet."""
    wide = mask.copy()
    wide[1:] |= mask[:-1]
    wide[:-1] |= mask[1:]
    return wide
