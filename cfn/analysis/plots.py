"""The pictures of one run: learning curve, bonus against truth (as in Figure 2), and maps."""

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import imread

from cfn.analysis.files import CountTable, Numbers, Series, latest_counts, read_config, read_metrics

LARGEST_MAP = 2000
"""Cells along a side, beyond which two numbers are no position on a map."""

MOST_ROOMS = 8
"""Rooms that are drawn, those with the most visits."""
PLAYER_LEFT, PLAYER_TOP = 2.5, 317.0
SCREEN = (160, 210)
"""Of Montezuma's Revenge: its player is drawn at (x + PLAYER_LEFT, PLAYER_TOP - y) of a screen of this size."""

BLUE, ORANGE, GREY = "#3366aa", "#dd7711", "#999999"

DISCOVERIES = {"distinct states seen": "explore/states", "rooms visited": "explore/rooms"}
"""What is shown beside the learning curve."""


def draw_run(folder: Path, title: str) -> dict[str, Path]:
    """Draw what the run's files hold.

    Args:
        folder: The run.
        title: What to call it in the pictures.

    Returns:
        The pictures by name, as files under `plots/`.
    """
    metrics = read_metrics(folder)
    figures = {"learning_curve": learning_curve(metrics, title)}
    if "bonus/floor_mse" in metrics:
        figures["count_error"] = count_error(metrics, title)
    table = latest_counts(folder)
    if table is not None and len(table.counts):
        figures["scatter"] = scatter(table, title, metrics.get("bonus/floor_mse"))
        if rooms := read_rooms(folder):
            figures["rooms"] = room_maps(table, rooms, title)
        if table.states.shape[1] == 2 and np.ptp(table.states, axis=0).max() < LARGEST_MAP:  # a position
            size = read_config(folder).get("env", {}).get("size")
            fits = isinstance(size, int) and table.states.min() >= 0 and table.states.max() < size
            figures["maps"] = maps(table, title, size if fits else None)
    paths = {name: folder / "plots" / f"{name}.png" for name in figures}
    for name, figure in figures.items():
        paths[name].parent.mkdir(exist_ok=True)
        figure.savefig(paths[name], dpi=110)
    return paths


def learning_curve(metrics: dict[str, Series], title: str) -> Figure:
    """Raw return over environment steps, and beside it, where there are true states and rooms, how many were found."""
    found = {what: metrics[name] for what, name in DISCOVERIES.items() if name in metrics}
    figure = Figure(figsize=(5.5 + 4 * len(found), 3.8), layout="constrained")
    left, *right = figure.subplots(1, 1 + len(found), squeeze=False)[0]
    if train := metrics.get("train/return"):
        smooth, window = _moving_mean(train.values)
        left.plot(train.steps, train.values, ".", color=GREY, alpha=0.5, markersize=4, label="training")
        if window > 1:
            left.plot(train.steps, smooth, color=ORANGE, label=f"training, mean of the last {window}")
    if evaluation := metrics.get("eval/return"):
        left.plot(evaluation.steps, evaluation.values, "o-", color=BLUE, markersize=3, label="evaluation")
    decorate(left, "environment steps", "return of an episode", "Learning curve")
    if left.get_legend_handles_labels()[0]:
        left.margins(y=0.12)
        low, high = left.dataLim.intervaly
        if high - low < 1e-6:  # nothing happened: say so on a scale on which something could have
            left.set_ylim(low - 0.1, high + 1.1)
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    for axes, (what, series) in zip(right, found.items(), strict=True):
        axes.plot(series.steps, series.values, "o-", color=BLUE, markersize=3)
        axes.set_ylim(bottom=0)
        decorate(axes, "environment steps", what, "Exploration")
    for axes in (left, *right):
        show_steps(axes)
    _title(figure, title)
    return figure


def count_error(metrics: dict[str, Series], title: str) -> Figure:
    """The bonus's error over time, above the floor that its coins leave whatever the network does."""
    figure = Figure(figsize=(5.5, 3.8), layout="constrained")
    axes = figure.subplots()
    mse, floor = metrics["bonus/mse"], metrics["bonus/floor_mse"]
    axes.plot(mse.steps, mse.values, "o-", color=BLUE, markersize=3, label="bonus")
    axes.plot(
        floor.steps, floor.values, "--", color="black", linewidth=1, label="floor: a perfect network, these coins"
    )
    if min(mse.values.min(), floor.values.min()) > 0:
        axes.set_yscale("log")
    decorate(axes, "environment steps", "mean squared error", "Count error, over visited states")
    show_steps(axes)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    _title(figure, title)
    return figure


def scatter(table: CountTable, title: str, floor: Series | None = None) -> Figure:
    """Predicted against true bonus, one point per visited state; a bonus that counts lies on the dashed line."""
    figure = Figure(figsize=(5, 5.1), layout="constrained")
    axes = figure.subplots()
    axes.plot(table.true_bonus, table.predicted_bonus, "o", color=BLUE, alpha=0.35, markersize=4, markeredgewidth=0)
    axes.plot([0, 1], [0, 1], "--", color="black", linewidth=1)
    axes.set_xlim(0, 1.03)
    low, high = float(table.predicted_bonus.min()), float(table.predicted_bonus.max())
    axes.set_ylim(min(0.0, 1.05 * low), max(1.03, 1.05 * high))
    mse = float(np.mean((table.predicted_bonus - table.true_bonus) ** 2))
    decorate(axes, "true bonus  $1/\\sqrt{N(s)}$", "predicted bonus  $B(s)$", "")
    error = f"mean squared error {mse:.2g}" + (f" (floor {floor.values[-1]:.2g})" if floor else "")
    axes.set_title(f"{len(table.counts):,} states after {table.step:,} steps\n{error}", fontsize=9)
    _title(figure, title)
    return figure


def maps(table: CountTable, title: str, size: int | None = None) -> Figure:
    """Visits and bonus over positions, side by side.

    Args:
        table: Counts of states that are positions (x, y).
        title: What to call the run.
        size: The grid's cells along a side, where it is known; else what was visited sets the extent.
    """
    low = np.zeros(2, np.int64) if size else table.states.min(axis=0)
    high = np.full(2, size - 1) if size else table.states.max(axis=0)
    figure = Figure(figsize=(9.5, 4.3), layout="constrained")
    visits, bonus = figure.subplots(1, 2)
    cells = table.states - low
    shape = tuple((high - low + 1)[::-1])

    def paint(axes: Axes, values: Numbers, norm: Normalize, colours: str, label: str) -> None:
        grid = np.full(shape, np.nan)
        grid[cells[:, 1], cells[:, 0]] = values
        extent = (low[0] - 0.5, high[0] + 0.5, low[1] - 0.5, high[1] + 0.5)
        image = axes.imshow(grid, origin="lower", extent=extent, cmap=colours, norm=norm, interpolation="nearest")
        axes.set_facecolor("#dddddd")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(ticker.MaxNLocator(6, integer=True))
        axes.set_xlabel("x (cells)")
        axes.set_ylabel("y (cells)")
        figure.colorbar(image, ax=axes, label=label, shrink=0.9)

    paint(visits, table.counts, LogNorm(1, max(2.0, float(table.counts.max()))), "viridis", "visits  $N(s)$")
    scale = Normalize(min(0.0, float(table.predicted_bonus.min())), max(1.0, float(table.predicted_bonus.max())))
    paint(bonus, table.predicted_bonus, scale, "magma", "bonus  $B(s)$")
    visits.set_title(f"after {table.step:,} steps", fontsize=9)
    bonus.set_title("grey: no action was taken there", fontsize=9)
    _title(figure, title)
    return figure


def read_rooms(folder: Path) -> dict[int, Numbers]:
    """The images of a run's rooms, in shades of grey from 0 to 1."""
    return {int(path.stem): imread(path)[..., 0] for path in (folder / "rooms").glob("*.png")}


def room_maps(table: CountTable, rooms: dict[int, Numbers], title: str) -> Figure:
    """Visits above and bonus below, over an image of each room; states are (x, y, room) of Montezuma's Revenge."""
    visits = {room: int(table.counts[table.states[:, 2] == room].sum()) for room in rooms}
    shown = sorted(sorted(rooms, key=lambda room: -visits[room])[:MOST_ROOMS])
    figure = Figure(figsize=(3 * len(shown) + 1.5, 6.2), layout="constrained")
    grid = figure.subplots(2, len(shown), squeeze=False)
    scales: tuple[Normalize, Normalize] = (
        LogNorm(1, max(2.0, float(table.counts.max()))),
        Normalize(min(0.0, float(table.predicted_bonus.min())), max(1.0, float(table.predicted_bonus.max()))),
    )
    for column, room in enumerate(shown):
        inside = table.states[:, 2] == room
        height, width = rooms[room].shape
        x = (table.states[inside, 0] + PLAYER_LEFT) * width / SCREEN[0]
        y = (PLAYER_TOP - table.states[inside, 1]) * height / SCREEN[1]
        for row, (values, colours) in enumerate(((table.counts, "viridis"), (table.predicted_bonus, "magma"))):
            axes = grid[row, column]
            axes.imshow(rooms[room], cmap="gray", vmin=0, vmax=1.3, extent=(0, width, height, 0))
            points = axes.scatter(x, y, c=values[inside], cmap=colours, norm=scales[row], s=5, linewidths=0)
            axes.set_axis_off()
            if column == len(shown) - 1:
                figure.colorbar(points, ax=grid[row], label=("visits  $N(s)$", "bonus  $B(s)$")[row], shrink=0.9)
        grid[0, column].set_title(f"room {room}: {visits[room]:,} visits", fontsize=9)
    more = len(rooms) - len(shown)
    _title(figure, f"{title}, after {table.step:,} steps" + (f", and {more} more rooms" if more else ""))
    return figure


def _title(figure: Figure, title: str) -> None:
    figure.suptitle(textwrap.fill(title, int(11 * figure.get_figwidth())), fontsize=11)


def show_steps(axes: Axes) -> None:
    """Environment steps along x, from 0."""
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    axes.xaxis.set_major_locator(ticker.MaxNLocator(6))


def decorate(axes: Axes, x: str, y: str, title: str) -> None:
    """Labels, a title, and a quiet frame."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _moving_mean(values: Numbers) -> tuple[Numbers, int]:
    """Means of the last values, a twentieth of all but at most 100, and how many those are."""
    window = int(np.clip(len(values) // 20, 1, 100))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    means: Any = (sums[ends] - sums[starts]) / (ends - starts)
    return means, window
