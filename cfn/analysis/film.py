"""Count tables over time, thinned to what a page can carry: the moments that the report's slider goes through."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from cfn.analysis.files import CountTable, Numbers
from cfn.analysis.groups import Group
from cfn.analysis.maps import Extent, extent, is_map

MOMENTS = 16
"""Of a run; evenly spaced, the last among them."""
PANELS = 8
"""Settings of a task that are shown, the first ones."""
_POINTS = 2000
"""States of a moment; of more, every so manieth."""
_UNITS = 1000
"""Predicted bonuses are kept as whole numbers of so many parts of the largest."""


def film(groups: Sequence[Group]) -> dict[str, Any] | None:
    """What the slider of a task shows: for each setting its first seed that has count tables."""
    panels = list(islice(filter(None, map(_panel, groups)), PANELS))  # more are not read
    if not panels:
        return None
    steps = sorted({frame["s"] for panel in panels for frame in panel["frames"]})
    return {"moments": _thinned(steps, 2 * MOMENTS), "panels": panels}


def palettes() -> dict[str, list[str]]:
    """Colours of the maps, as everywhere else."""
    return {name: [to_hex(c) for c in colormaps[name](np.linspace(0, 1, 64))] for name in ("viridis", "magma")}


def _panel(group: Group) -> dict[str, Any] | None:
    run = next((run for run in group.runs if run.tables), None)
    if run is None:
        return None
    tables = [table for path in _thinned(run.tables, MOMENTS) if (table := run.table(path)) is not None]
    if not tables:
        return None
    # the last moment sets the scale: while a network begins to learn, its bonus may be anything
    top = max([1.0] * group.counts + [float(tables[-1].predicted_bonus.max())]) or 1.0
    shown = extent(tables[-1], run.config) if is_map(tables[-1]) else None
    shown = shown if shown and _cells(shown) <= _POINTS and _inside(tables, shown) else None
    bonus = group.first.bonus != "none"
    if not (bonus or shown):
        return None
    return {
        "label": f"{group.label}, seed {run.seed}",
        "counts": group.counts,
        "bonus": bonus,
        "top": top,
        "unit": top / _UNITS,
        "most": max(int(table.counts.max()) for table in tables),
        "cells": [int(n) for n in shown.high - shown.low + 1] if shown else None,
        "frames": [_frame(table, top, group.counts, shown) for table in tables],
    }


def _frame(table: CountTable, top: float, counts: bool, shown: Extent | None) -> dict[str, Any]:
    every = 1 if shown else -(-len(table.counts) // _POINTS)
    part = slice(None, None, every)
    beyond = int((table.predicted_bonus > top).sum())
    error = float(np.mean((table.predicted_bonus - table.true_bonus) ** 2))
    frame: dict[str, Any] = {
        "s": table.step,
        "n": _whole(table.counts[part]),
        "p": _whole(table.predicted_bonus[part] * _UNITS / top),
        "said": f"{len(table.counts):,} states after {table.step:,} steps"
        + (f", mean squared error {error:.2g}" if counts else "")
        + (f", one state in {every} drawn" if every > 1 else "")
        + (f", {beyond:,} above the scale" if beyond else ""),
    }
    if shown:
        x, y = (table.states - shown.low).T
        frame["c"] = [int(n) for n in y * (shown.high[0] - shown.low[0] + 1) + x]
    return frame


def _whole(values: Numbers) -> list[int]:
    return [int(n) for n in np.nan_to_num(np.rint(values))]


def _thinned(values: Sequence[Any], most: int) -> list[Any]:
    """At most so many of them, evenly spaced, the last among them."""
    places = np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int))
    return [values[i] for i in places]


def _cells(shown: Extent) -> int:
    return int(np.prod(shown.high - shown.low + 1))


def _inside(tables: Sequence[CountTable], shown: Extent) -> bool:
    return all(
        table.states.shape[1] == 2 and (table.states >= shown.low).all() and (table.states <= shown.high).all()
        for table in tables
    )
