"""Maps of visits and bonus: over the positions of a grid, or over the rooms of Montezuma's Revenge."""

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

from cfn.analysis.figures.common import put_title
from cfn.runs.layout import Layout
from cfn.runs.reading import CountTable, Numbers

MAX_MAP_SIZE = 2000
"""Cells per side of the largest map. States that span more are not positions."""

MAX_ROOMS = 8
"""Rooms in one figure: those with the most visits."""
PLAYER_LEFT, PLAYER_TOP = 2.5, 317.0
"""Offsets in pixels: Montezuma's Revenge draws its player at (x + PLAYER_LEFT, PLAYER_TOP - y)."""
SCREEN = (160, 210)
"""Width and height of the screen in pixels."""


class Extent(NamedTuple):
    """Cells shown by a map: the first and the last (x, y)."""

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]


def is_mappable(table: CountTable) -> bool:
    """Return whether the states are positions (x, y) that fit on a map."""
    return table.states.shape[1] == 2 and bool(np.ptp(table.states, axis=0).max() < MAX_MAP_SIZE)


def map_extent(table: CountTable, config: Mapping[str, Any]) -> Extent:
    """Return the whole grid if the config has its size; otherwise the visited part.

    Args:
        table: Count table whose states are positions.
        config: Config of the run.
    """
    env = config.get("env")
    size = env.get("size") if isinstance(env, Mapping) else None
    if isinstance(size, int) and table.states.min() >= 0 and table.states.max() < size <= MAX_MAP_SIZE:
        return Extent(np.zeros(2, np.int64), np.full(2, size - 1))
    return Extent(table.states.min(axis=0), table.states.max(axis=0))


def map_scales(tables: Sequence[CountTable]) -> dict[str, tuple[Normalize, str]]:
    """Return scale and colour map of visits and of bonus, by their labels; the scales cover all tables."""
    bonuses = [table.predicted_bonus for table in tables]
    return {
        "visits  $N(s)$": (LogNorm(1, max(2.0, *(float(table.counts.max()) for table in tables))), "viridis"),
        "bonus  $B(s)$": (
            Normalize(min(0.0, *(float(b.min()) for b in bonuses)), max(1.0, *(float(b.max()) for b in bonuses))),
            "magma",
        ),
    }


def draw_map(axes: Axes, table: CountTable, extent: Extent, values: Numbers, scale: tuple[Normalize, str]) -> AxesImage:
    """Draw one value per state at its position; cells in which no action was taken are grey.

    Args:
        axes: Panel to draw on.
        table: Count table whose states are positions.
        extent: Cells to draw.
        values: Value of each state.
        scale: Scale and name of the colour map.
    """
    low, high = extent
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


def map_figure(table: CountTable, title: str, extent: Extent) -> Figure:
    """Return a figure with maps of visits and of bonus, side by side.

    Args:
        table: Count table whose states are positions (x, y).
        title: Title of the figure.
        extent: Cells to draw.
    """
    figure = Figure(figsize=(9.5, 4.3), layout="constrained")
    visits, bonus = figure.subplots(1, 2)
    values = (table.counts, table.predicted_bonus)
    for axes, (label, scale), numbers in zip((visits, bonus), map_scales([table]).items(), values, strict=True):
        figure.colorbar(draw_map(axes, table, extent, numbers, scale), ax=axes, label=label, shrink=0.9)
    visits.set_title(f"after {table.step:,} steps", fontsize=9)
    bonus.set_title("grey: no action was taken there", fontsize=9)
    put_title(figure, title)
    return figure


def read_rooms(folder: Path) -> dict[int, Numbers]:
    """Return the room images of a run by room number, grey from 0 to 1; files that are not images are left out."""
    rooms = {}
    for path in Layout(folder).rooms.glob("*.png"):
        with contextlib.suppress(OSError, SyntaxError, ValueError, IndexError):
            rooms[int(path.stem)] = imread(path)[..., 0]
    return rooms


def room_map_figure(table: CountTable, rooms: dict[int, Numbers], title: str) -> Figure:
    """Return a figure with maps of visits (above) and bonus (below), drawn over the image of each room.

    Args:
        table: Count table whose states are (x, y, room) of Montezuma's Revenge.
        rooms: Image of each room.
        title: Title of the figure.
    """
    visits = {room: int(table.counts[table.states[:, 2] == room].sum()) for room in rooms}
    shown = sorted(sorted(rooms, key=lambda room: -visits[room])[:MAX_ROOMS])
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
