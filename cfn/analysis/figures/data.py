"""The numbers behind a picture, as a tidy table: one row per point that is drawn.

They are read from the figure itself, so that table and picture cannot differ.
"""

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure

from cfn.analysis.figures.common import SERIES


class Point(NamedTuple):
    """One row.

    Attributes:
        panel: Title of the panel, or its number if it has none.
        series: Label in the legend; empty if the legend has none.
        kind: `line`, `point`, `bar`, `low` and `high` (ends of an interval), or `cell` of a map.
        x: Place on the x axis; in a bar chart, the name of the bar's group.
        y: Place on the y axis.
        value: Value of a cell or of a coloured point; otherwise empty.
    """

    panel: str
    series: str
    kind: str
    x: float | str
    y: float
    value: float | str = ""


def write_data(figure: Figure, path: Path) -> Path:
    """Write the points of a figure as CSV, and return the path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Point._fields)
        writer.writerows(points(figure))
    return path


def points(figure: Figure) -> Iterator[Point]:
    """Yield every point that is drawn in the panels of a figure; missing values are left out."""
    labels = _labels(figure)
    for number, axes in enumerate(figure.axes, 1):
        if axes.get_label() == "<colorbar>":
            continue
        panel = " ".join(axes.get_title().split()) or f"panel {number}"
        for kind, artist, x, y, value in _drawn(axes):
            if math.isfinite(x) and math.isfinite(y) and not (isinstance(value, float) and math.isnan(value)):
                yield Point(panel, _series(artist, labels), kind, _name_of(axes, x), y, value)


def _series(artist: Any, labels: Mapping[str, str]) -> str:
    """Return the series of an artist: its own name, its label in the legend, or the label of its colour."""
    label = "" if artist is None else str(artist.get_label())
    if label.startswith(SERIES):
        return label.removeprefix(SERIES)
    if label and not label.startswith("_"):
        return label
    return labels.get(_colour(artist), "")


def _name_of(axes: Axes, x: float) -> float | str:
    """Return the name of the nearest tick in a bar chart; elsewhere the number itself."""
    if not _bars(axes):
        return x
    ticks = axes.get_xticks()
    return axes.get_xticklabels()[int(np.abs(np.asarray(ticks) - x).argmin())].get_text()


def _bars(axes: Axes) -> list[BarContainer]:
    return [container for container in axes.containers if isinstance(container, BarContainer)]


def _labels(figure: Figure) -> dict[str, str]:
    """Return the label of each colour, for artists that do not name their series."""
    labels: dict[str, str] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            labels.setdefault(_colour(handle), label)
    return labels


def _colour(artist: Any) -> str:
    if isinstance(artist, BarContainer):
        artist = artist.patches[0]
    if isinstance(artist, ErrorbarContainer):
        artist = artist.lines[2][0]
    for name in ("get_color", "get_facecolor", "get_edgecolor"):
        if hasattr(artist, name):
            colour = getattr(artist, name)()
            colour = colour[0] if isinstance(colour, np.ndarray) and colour.ndim == 2 and len(colour) else colour
            try:
                return to_hex(colour)
            except ValueError:
                continue
    return ""


def _drawn(axes: Axes) -> Iterator[tuple[str, Any, float, float, float | str]]:
    """Yield kind, artist, place and value of each point of a panel."""
    errors = [container for bars in _bars(axes) if (container := bars.errorbar) is not None]
    errors += [container for container in axes.containers if isinstance(container, ErrorbarContainer)]
    caps = [cap for container in errors for cap in container.lines[1]]
    # Error bars belong to the bars or points that have the label.
    owners: dict[Any, Any] = {}
    for each in axes.containers:
        if isinstance(each, ErrorbarContainer):
            owners |= dict.fromkeys([*each.lines[2], each.lines[0]], each)
    for bars in _bars(axes):
        if bars.errorbar is not None:
            owners |= dict.fromkeys(bars.errorbar.lines[2], bars)
    for line in axes.lines:
        if line in caps:
            continue
        kind = "point" if line.get_linestyle() in ("None", "none", "", " ") else "line"
        for x, y in zip(*map(_numbers, line.get_data()), strict=True):
            yield kind, owners.get(line, line), x, y, ""
    for bars in _bars(axes):
        for patch in bars.patches:
            yield "bar", bars, patch.get_x() + patch.get_width() / 2, patch.get_height(), ""
    for collection in axes.collections:
        if isinstance(collection, PolyCollection):  # of fill_between
            for path in collection.get_paths():
                yield from _interval(np.asarray(path.vertices), collection)
        elif isinstance(collection, LineCollection):  # error bars
            for segment in collection.get_segments():
                yield from _interval(np.asarray(segment), owners.get(collection, collection))
        elif isinstance(collection, PathCollection):  # scatter
            array, places = collection.get_array(), np.asarray(collection.get_offsets()).tolist()
            values: list[Any] = _numbers(array) if array is not None else [""] * len(places)
            for (x, y), value in zip(places, values, strict=True):
                yield "point", collection, x, y, value
    for image in axes.images:
        left, right, bottom, top = image.get_extent()
        array = np.ma.filled(np.ma.asarray(image.get_array()).astype(float), np.nan)
        if array.ndim != 2:
            continue  # a photograph, such as a room of a game
        height, width = array.shape
        if image.origin == "upper":
            bottom, top = top, bottom
            array = array[::-1]
        for row, column in np.ndindex(height, width):
            x = left + (column + 0.5) * (right - left) / width
            y = bottom + (row + 0.5) * (top - bottom) / height
            yield "cell", None, x, y, float(array[row, column])


def _interval(vertices: Any, artist: Any) -> Iterator[tuple[str, Any, float, float, str]]:
    """Yield the lowest and highest y of each x."""
    if vertices.ndim != 2:  # the interval of a single seed has no ends
        return
    for x in np.unique(vertices[:, 0]):
        here = vertices[vertices[:, 0] == x, 1]
        yield "low", artist, float(x), float(here.min()), ""
        yield "high", artist, float(x), float(here.max()), ""


def _numbers(values: Any) -> list[float]:
    numbers: list[float] = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan).tolist()
    return numbers
