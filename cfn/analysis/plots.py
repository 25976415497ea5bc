"""The pictures of one run: learning curve, count error, bonus against truth (as in Figure 2), and maps."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cfn.analysis import panels
from cfn.analysis.axes import decorate, moving_mean, put_title, show_steps
from cfn.analysis.files import CountTable, Series, read_metrics
from cfn.analysis.maps import extent, is_map, maps, read_rooms, room_maps
from cfn.analysis.runs import DISCOVERIES, read

BLUE, ORANGE, GREY = "#3366aa", "#dd7711", "#999999"


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
    run = read(folder)
    if (table := run.newest_table()) is not None:
        if run.bonus != "none":
            figures["scatter"] = scatter(table, title, run.counts, metrics.get("bonus/floor_mse"))
        if rooms := read_rooms(folder):
            figures["rooms"] = room_maps(table, rooms, title)
        if is_map(table):
            figures["maps"] = maps(table, title, extent(table, run.config))
    paths = {name: folder / "plots" / f"{name}.png" for name in figures}
    for name, figure in figures.items():
        paths[name].parent.mkdir(exist_ok=True)
        figure.savefig(paths[name], dpi=110)
    return paths


def learning_curve(metrics: dict[str, Series], title: str) -> Figure:
    """Raw return over environment steps, and beside it, where there are true states and rooms, how many were found."""
    found = {what: metrics[name] for name, what in DISCOVERIES.items() if name in metrics}
    figure = Figure(figsize=(5.5 + 4 * len(found), 3.8), layout="constrained")
    left, *right = figure.subplots(1, 1 + len(found), squeeze=False)[0]
    if train := metrics.get("train/return"):
        window = int(np.clip(len(train.values) // 20, 1, 100))
        left.plot(train.steps, train.values, ".", color=GREY, alpha=0.5, markersize=4, label="training")
        if window > 1:
            smooth = moving_mean(train.values, window)
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
    put_title(figure, title)
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
    put_title(figure, title)
    return figure


def scatter(table: CountTable, title: str, counts: bool, floor: Series | None = None) -> Figure:
    """Predicted against true bonus, one point per visited state; a bonus that counts lies on the dashed line."""
    figure = Figure(figsize=(5, 5.1), layout="constrained")
    mse = float(np.mean((table.predicted_bonus - table.true_bonus) ** 2))
    error = f"mean squared error {mse:.2g}" + (f" (floor {floor.values[-1]:.2g})" if floor else "")
    judged = error if counts else "a bonus on a scale of its own: only its order can be right"
    panels.scatter(
        figure.subplots(), [table], f"{len(table.counts):,} states after {table.step:,} steps\n{judged}", counts
    )
    put_title(figure, title)
    return figure
