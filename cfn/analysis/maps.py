"""Maps: visits and bonus over the positions of states, on a grid or over the rooms of Montezuma's Revenge."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage, imread

from cfn.analysis.axes import put_title
from cfn.analysis.files import CountTable, Numbers

LARGEST_MAP = 2000
"""Cells along a side, beyond which two numbers are no position on a map."""

MOST_ROOMS = 8
"""Rooms that are drawn, those with the most visits."""
PLAYER_LEFT, PLAYER_TOP = 2.5, 317.0
SCREEN = (160, 210)
"""Of Montezuma's Revenge: its player is drawn at (x + PLAYER_LEFT, PLAYER_TOP - y) of a screen of this size."""


class Extent(NamedTuple):
    """The cells that a map shows, of both axes the first and the last."""

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]


def is_map(table: CountTable) -> bool:
    """Whether the states are positions (x, y) that fit on a map."""
    return table.states.shape[1] == 2 and bool(np.ptp(table.states, axis=0).max() < LARGEST_MAP)


def extent(table: CountTable, config: Mapping[str, Any]) -> Extent:
    """The whole grid, where the config knows its size; else what was visited."""
    env = config.get("env")
    size = env.get("size") if isinstance(env, Mapping) else None
    if isinstance(size, int) and table.states.min() >= 0 and table.states.max() < size <= LARGEST_MAP:
        return Extent(np.zeros(2, np.int64), np.full(2, size - 1))
    return Extent(table.states.min(axis=0), table.states.max(axis=0))


def map_scales(tables: Sequence[CountTable]) -> dict[str, tuple[Normalize, str]]:
    """Of visits and of bonus: a scale that all tables fit into, and its colours."""
    bonuses = [table.predicted_bonus for table in tables]
    return {
        "visits  $N(s)$": (LogNorm(1, max(2.0, *(float(table.counts.max()) for table in tables))), "viridis"),
        "bonus  $B(s)$": (
            Normalize(min(0.0, *(float(b.min()) for b in bonuses)), max(1.0, *(float(b.max()) for b in bonuses))),
            "magma",
        ),
    }


def paint(axes: Axes, table: CountTable, shown: Extent, values: Numbers, scale: tuple[Normalize, str]) -> AxesImage:
    """Values of states over their positions; grey where no action was taken."""
    low, high = shown
    cells = table.states - low
    grid = np.full(tuple((high - low + 1)[::-1]), np.nan)
    grid[cells[:, 1], cells[:, 0]] = values
    norm, colours = scale
    edges = (low[0] - 0.5, high[0] + 0.5, low[1] - 0.5, high[1] + 0.5)
    image = axes.imshow(grid, origin="lower", extent=edges, cmap=colours, norm=norm, interpolation="nearest")
    axes.set_facecolor("#dddddd")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(ticker.MaxNLocator(5, integer=True))
    axes.set_xlabel("x (cells)")
    axes.set_ylabel("y (cells)")
    return image


def maps(table: CountTable, title: str, shown: Extent) -> Figure:
    """Visits and bonus over positions, side by side.

    Args:
        table: Counts of states that are positions (x, y).
        title: What to call the run.
        shown: The cells that are drawn.
    """
    figure = Figure(figsize=(9.5, 4.3), layout="constrained")
    visits, bonus = figure.subplots(1, 2)
    values = (table.counts, table.predicted_bonus)
    for axes, (label, scale), numbers in zip((visits, bonus), map_scales([table]).items(), values, strict=True):
        figure.colorbar(paint(axes, table, shown, numbers, scale), ax=axes, label=label, shrink=0.9)
    visits.set_title(f"after {table.step:,} steps", fontsize=9)
    bonus.set_title("grey: no action was taken there", fontsize=9)
    put_title(figure, title)
    return figure


def read_rooms(folder: Path) -> dict[int, Numbers]:
    """The images of a run's rooms, in shades of grey from 0 to 1; those that are none are left out."""
    rooms = {}
    for path in (folder / "rooms").glob("*.png"):
        with contextlib.suppress(OSError, SyntaxError, ValueError, IndexError):
            rooms[int(path.stem)] = imread(path)[..., 0]
    return rooms


def room_maps(table: CountTable, rooms: dict[int, Numbers], title: str) -> Figure:
    """Visits above and bonus below, over an image of each room; states are (x, y, room) of Montezuma's Revenge."""
    visits = {room: int(table.counts[table.states[:, 2] == room].sum()) for room in rooms}
    shown = sorted(sorted(rooms, key=lambda room: -visits[room])[:MOST_ROOMS])
    figure = Figure(figsize=(3 * len(shown) + 1.5, 6.2), layout="constrained")
    grid = figure.subplots(2, len(shown), squeeze=False)
    scales = map_scales([table])
    for column, room in enumerate(shown):
        inside = table.states[:, 2] == room
        height, width = rooms[room].shape
        x = (table.states[inside, 0] + PLAYER_LEFT) * width / SCREEN[0]
        y = (PLAYER_TOP - table.states[inside, 1]) * height / SCREEN[1]
        for row, values in enumerate((table.counts, table.predicted_bonus)):
            axes = grid[row, column]
            label, (norm, colours) = list(scales.items())[row]
            axes.imshow(rooms[room], cmap="gray", vmin=0, vmax=1.3, extent=(0, width, height, 0))
            look: dict[str, Any] = {"s": 7, "linewidths": 0.3, "edgecolors": "#bbbbbb", "rasterized": True}
            points = axes.scatter(x, y, c=values[inside], cmap=colours, norm=norm, **look)
            axes.set_axis_off()
            if column == len(shown) - 1:
                figure.colorbar(points, ax=grid[row], label=label, shrink=0.9)
        grid[0, column].set_title(f"room {room}: {visits[room]:,} visits", fontsize=9)
    more = len(rooms) - len(shown)
    put_title(figure, f"{title}, after {table.step:,} steps" + (f", and {more} more rooms" if more else ""))
    return figure
