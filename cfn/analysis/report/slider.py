"""Data of the report's slider: count tables over time, thinned so that the page stays small."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from cfn.analysis.figures.maps import Extent, is_mappable, map_extent
from cfn.analysis.grouping import Group
from cfn.runs.reading import CountTable, Numbers

MAX_FRAMES = 16
"""Count tables per run: evenly spaced, including the last."""
MAX_PANELS = 8
"""Settings per task: the first ones."""
_MAX_POINTS = 2000
"""States per frame; larger tables are subsampled."""
_BONUS_LEVELS = 1000
"""Resolution of predicted bonuses: they are stored as integers, with this value for the top of the scale."""


def slider_data(groups: Sequence[Group]) -> dict[str, Any] | None:
    """Return the data of the slider of one task, in the format that `page.js` reads.

    Each setting is represented by its first seed that has count tables.

    Returns:
        `steps`: positions of the slider; `panels`: one per setting. None if no setting has count tables.
    """
    panels = list(islice(filter(None, map(_panel, groups)), MAX_PANELS))  # lazy: further settings are not read
    if not panels:
        return None
    steps = sorted({frame["step"] for panel in panels for frame in panel["frames"]})
    return {"steps": _thinned(steps, 2 * MAX_FRAMES), "panels": panels}


def palettes() -> dict[str, list[str]]:
    """Return the colours of the colour maps that the figures use, as hexadecimal codes."""
    return {name: [to_hex(c) for c in colormaps[name](np.linspace(0, 1, 64))] for name in ("viridis", "magma")}


def _panel(group: Group) -> dict[str, Any] | None:
    """Return the data of one setting; None if there is nothing to draw."""
    run = next((run for run in group.runs if run.tables), None)
    if run is None:
        return None
    tables = [table for path in _thinned(run.tables, MAX_FRAMES) if (table := run.table(path)) is not None]
    if not tables:
        return None
    # The last table sets the scale: early in training, a bonus may be arbitrarily large.
    top = max([1.0] * group.estimates_counts + [float(tables[-1].predicted_bonus.max())]) or 1.0
    extent = map_extent(tables[-1], run.config) if is_mappable(tables[-1]) else None
    extent = extent if extent and _cells(extent) <= _MAX_POINTS and _inside(tables, extent) else None
    has_bonus = group.first.bonus != "none"
    if not (has_bonus or extent):
        return None
    return {
        "label": f"{group.label}, seed {run.seed}",
        "estimates_counts": group.estimates_counts,
        "has_bonus": has_bonus,
        "top": top,
        "unit": top / _BONUS_LEVELS,
        "most_visits": max(int(table.counts.max()) for table in tables),
        "grid": [int(n) for n in extent.high - extent.low + 1] if extent else None,
        "frames": [_frame(table, top, group.estimates_counts, extent) for table in tables],
    }


def _frame(table: CountTable, top: float, estimates_counts: bool, extent: Extent | None) -> dict[str, Any]:
    """Return the data of one count table.

    Args:
        table: Count table.
        top: Top of the bonus scale.
        estimates_counts: Whether the bonus estimates 1 / sqrt(N), so that its error means something.
        extent: Cells of the map; None: no map.
    """
    every = 1 if extent else -(-len(table.counts) // _MAX_POINTS)
    part = slice(None, None, every)
    beyond = int((table.predicted_bonus > top).sum())
    error = float(np.mean((table.predicted_bonus - table.true_bonus) ** 2))
    frame: dict[str, Any] = {
        "step": table.step,
        "counts": _rounded(table.counts[part]),
        "bonus": _rounded(table.predicted_bonus[part] * _BONUS_LEVELS / top),
        "caption": f"{len(table.counts):,} states after {table.step:,} steps"
        + (f", mean squared error {error:.2g}" if estimates_counts else "")
        + (f", one state in {every} drawn" if every > 1 else "")
        + (f", {beyond:,} above the scale" if beyond else ""),
    }
    if extent:
        x, y = (table.states - extent.low).T
        frame["cells"] = [int(n) for n in y * (extent.high[0] - extent.low[0] + 1) + x]
    return frame


def _rounded(values: Numbers) -> list[int]:
    return [int(n) for n in np.nan_to_num(np.rint(values))]


def _thinned(values: Sequence[Any], most: int) -> list[Any]:
    """Return at most `most` values, evenly spaced, including the first and the last."""
    places = np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int))
    return [values[i] for i in places]


def _cells(extent: Extent) -> int:
    return int(np.prod(extent.high - extent.low + 1))


def _inside(tables: Sequence[CountTable], extent: Extent) -> bool:
    return all(
        table.states.shape[1] == 2 and (table.states >= extent.low).all() and (table.states <= extent.high).all()
        for table in tables
    )
