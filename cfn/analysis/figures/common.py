"""Functions for all figures: title, axis labels, steps along the x axis, and saving."""

import textwrap
from pathlib import Path
from typing import Any

from matplotlib import rc_context, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cfn.errors import UsageError

SERIES = "_series "
"""Prefix of labels that name the series of an artist without showing it in a legend."""
DPI = 110
"""Dots per inch of PNG files."""


def put_title(figure: Figure, title: str) -> None:
    """Put a title above all panels, wrapped to the width of the figure."""
    figure.suptitle(textwrap.fill(title, int(11 * figure.get_figwidth())), fontsize=11)


def show_steps(axes: Axes) -> None:
    """Format the x axis as environment steps, from 0."""
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda steps, _: shown_steps(steps)))
    axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))


def shown_steps(steps: float) -> str:
    """Return a number of steps as an axis shows it: 200, 1.5k, 2M."""
    for size, suffix in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if abs(steps) >= size:
            return f"{steps / size:g}{suffix}"
    return f"{steps:g}"


def decorate(axes: Axes, x: str, y: str, title: str) -> None:
    """Add labels, a title, a light grid and a frame without top and right lines.

    Args:
        axes: Panel to decorate.
        x: Label of the x axis.
        y: Label of the y axis.
        title: Title of the panel.
    """
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def mark_missing(axes: Axes, title: str, text: str) -> None:
    """Show a text instead of data.

    Args:
        axes: Empty panel.
        title: Title of the panel.
        text: Text, such as "no run".
    """
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=9, color="#777777")


def save(figure: Figure, path: Path) -> Path:
    """Write a figure in the format of the path's suffix, without dates: equal figures give equal files.

    Returns:
        The path.
    """
    dates: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    try:
        with rc_context({"svg.hashsalt": "cfn"}):
            figure.savefig(path, dpi=DPI, metadata=dates.get(path.suffix))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    return path
