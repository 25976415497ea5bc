"""What all pictures share: labels, a quiet frame, steps along x, a title that has room; and smoothing."""

import textwrap

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cfn.analysis.files import Numbers


def put_title(figure: Figure, title: str) -> None:
    """A title above all panels, in as many lines as the figure's width asks for."""
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


def moving_mean(values: Numbers, window: int) -> Numbers:
    """Means of so many of the last values; at the beginning, of those there are."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    means: Numbers = (sums[ends] - sums[starts]) / (ends - starts)
    return means
