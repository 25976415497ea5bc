"""Figures of one run: learning curve, count error, scatter of predicted and true bonus (as in Figure 2), and maps."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cfn.analysis.figures.common import DPI, decorate, put_title, show_steps
from cfn.analysis.figures.maps import is_mappable, map_extent, map_figure, read_rooms, room_map_figure
from cfn.analysis.figures.panels import draw_scatter_panel
from cfn.analysis.stats import moving_mean
from cfn.runs.reading import CountTable, Series, read_metrics
from cfn.runs.record import DISCOVERIES, ERROR, FLOOR, SCORE, TRAINING, Record

BLUE, ORANGE, GREY = "#3366aa", "#dd7711", "#999999"


def draw_run(folder: Path, title: str) -> dict[str, Path]:
    """Draw every figure that the files of a run have data for, and write them to its folder of pictures.

    Args:
        folder: Run folder.
        title: Title of the figures.

    Returns:
        Path of each picture, by name.
    """
    metrics, run = read_metrics(folder), Record.read(folder)
    figures = {"learning_curve": learning_curve_figure(metrics, title)}
    if FLOOR in metrics:
        figures["count_error"] = count_error_figure(metrics, title)
    if (table := run.newest_table()) is not None:
        if run.bonus != "none":
            figures["scatter"] = scatter_figure(table, title, run.estimates_counts, metrics.get(FLOOR))
        if rooms := read_rooms(folder):
            figures["rooms"] = room_map_figure(table, rooms, title)
        if is_mappable(table):
            figures["maps"] = map_figure(table, title, map_extent(table, run.config))
    run.files.plots.mkdir(exist_ok=True)
    paths = {name: run.files.plot(name) for name in figures}
    for name, figure in figures.items():
        figure.savefig(paths[name], dpi=DPI)
    return paths


def learning_curve_figure(metrics: dict[str, Series], title: str) -> Figure:
    """Return a figure of raw returns over environment steps and, if known, of the states and rooms found.

    Args:
        metrics: All metrics of the run.
        title: Title of the figure.
    """
    found = {label: metrics[name] for name, label in DISCOVERIES.items() if name in metrics}
    figure = Figure(figsize=(5.5 + 4 * len(found), 3.8), layout="constrained")
    left, *right = figure.subplots(1, 1 + len(found), squeeze=False)[0]
    if train := metrics.get(TRAINING):
        window = int(np.clip(len(train.values) // 20, 1, 100))
        left.plot(train.steps, train.values, ".", color=GREY, alpha=0.5, markersize=4, label="training")
        if window > 1:
            smooth = moving_mean(train.values, window)
            left.plot(train.steps, smooth, color=ORANGE, label=f"training, mean of the last {window}")
    if evaluation := metrics.get(SCORE):
        left.plot(evaluation.steps, evaluation.values, "o-", color=BLUE, markersize=3, label="evaluation")
    decorate(left, "environment steps", "return of an episode", "Learning curve")
    if left.get_legend_handles_labels()[0]:
        left.margins(y=0.12)
        low, high = left.dataLim.intervaly
        if high - low < 1e-6:  # constant return: keep a scale on which a change of 1 would show
            left.set_ylim(low - 0.1, high + 1.1)
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    for axes, (label, series) in zip(right, found.items(), strict=True):
        axes.plot(series.steps, series.values, "o-", color=BLUE, markersize=3)
        axes.set_ylim(bottom=0)
        decorate(axes, "environment steps", label, "Exploration")
    for axes in (left, *right):
        show_steps(axes)
    put_title(figure, title)
    return figure


def count_error_figure(metrics: dict[str, Series], title: str) -> Figure:
    """Return a figure of the bonus error over steps, and of the error that a perfect network would have.

    Args:
        metrics: All metrics of the run.
        title: Title of the figure.
    """
    figure = Figure(figsize=(5.5, 3.8), layout="constrained")
    axes = figure.subplots()
    mse, floor = metrics[ERROR], metrics[FLOOR]
    axes.plot(mse.steps, mse.values, "o-", color=BLUE, markersize=3, label="bonus")
    axes.plot(
        floor.steps, floor.values, "--", color="black", linewidth=1, label="floor: a perfect network, these coins"
    )
    if min(mse.values.min(), floor.values.min()) > 0:
        axes.set_yscale("log")
    decorate(axes, "environment steps", "mean squared error", "Count error, over visited states")
    show_steps(axes)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    put_title(figure, title)
    return figure


def scatter_figure(table: CountTable, title: str, estimates_counts: bool, floor: Series | None = None) -> Figure:
    """Return a figure of predicted against true bonus, one point per visited state.

    Args:
        table: Count table to draw.
        title: Title of the figure.
        estimates_counts: Whether the bonus estimates 1 / sqrt(N), the dashed line.
        floor: Error that a perfect network would have.
    """
    figure = Figure(figsize=(5, 5.1), layout="constrained")
    mse = float(np.mean((table.predicted_bonus - table.true_bonus) ** 2))
    error = f"mean squared error {mse:.2g}" + (f" (floor {floor.values[-1]:.2g})" if floor else "")
    quality = error if estimates_counts else "a bonus on a scale of its own: only its order can be right"
    subtitle = f"{len(table.counts):,} states after {table.step:,} steps\n{quality}"
    draw_scatter_panel(figure.subplots(), [table], subtitle, estimates_counts)
    put_title(figure, title)
    return figure
