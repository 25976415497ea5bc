"""Legends and captions below figures."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from cfn.analysis.grouping import Group
from cfn.analysis.stats import Stat, meaning

_LABEL_LETTERS, _CAPTION_LETTERS = 11, 15
"""Letters per inch of width, of a legend and of a caption."""
_LINE = 0.16
"""Height of a line of a caption, in inches."""
_GAP = 0.07
"""Space below the caption, and between caption, legend and panels, in inches."""


def add_below(figure: Figure, *sentences: str, legend: bool = True) -> None:
    """Add a caption below all panels and, above it, one legend for all of them. The figure grows by their height.

    Args:
        figure: Figure with constrained layout.
        sentences: Sentences of the caption, without full stops.
        legend: Whether to add the legend.
    """
    text = " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences)
    width = figure.get_figwidth()
    lines = textwrap.wrap(text, int(_CAPTION_LETTERS * width))
    place: dict[str, Any] = {"ha": "center", "va": "bottom", "transform": figure.dpi_scale_trans}
    figure.text(width / 2, _GAP, "\n".join(lines), fontsize=8, color="#555555", linespacing=1.2, **place)
    top = caption = _LINE * len(lines) + 2 * _GAP
    entries = _legend(figure) if legend else None
    if entries is not None:
        top += entries.get_window_extent().height / figure.dpi + _GAP
    height = figure.get_figheight() + top
    figure.set_figheight(height)
    layout: Any = figure.get_layout_engine()
    layout.set(rect=(0, top / height, 1, 1 - top / height))
    if entries is not None:
        entries.set_bbox_to_anchor((0.5, caption / height), figure.transFigure)


def describe_statistic(stat: Stat, groups: Sequence[Group]) -> str:
    """Return a sentence on the statistic over seeds, and on their number."""
    seeds = sorted({len(group.runs) for group in groups})
    number = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return "1 seed each" if seeds == [1] else f"{meaning(stat, seeds[-1])} over {number} seeds"


def label_with_seeds(name: str, drawn: int, number: int) -> str:
    """Return the label of a setting in a legend.

    Args:
        name: Name of the setting.
        drawn: Number of seeds with data.
        number: Number of seeds.
    """
    seeds = f"{number}" if drawn == number else f"{drawn} of {number}"
    return f"{name} ({seeds} seed{'s' * (number > 1)})"


def wrap_label(label: str, width: int) -> str:
    """Return a label broken after commas into lines of at most `width` letters; a longer part stays whole."""
    lines = [""]
    for part in label.split(", "):
        joined = f"{lines[-1]}, {part}" if lines[-1] else part
        if len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(part)
    return ",\n".join(filter(None, lines))


def _legend(figure: Figure) -> Legend | None:
    """Return a legend of all panels, with as many columns as its longest label allows; None if they have no labels."""
    entries: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if not entries:
        return None
    room = int(_LABEL_LETTERS * figure.get_figwidth())
    labels = [wrap_label(label, room - 8) for label in entries]
    longest = max(len(line) for label in labels for line in label.splitlines())
    columns = int(np.clip(room // (longest + 6), 1, min(4, len(labels))))
    look: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": 9, "borderaxespad": 0.0}
    return figure.legend(list(entries.values()), labels, loc="lower center", **look)
