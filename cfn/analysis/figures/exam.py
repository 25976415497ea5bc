"""Figures of `cfn exam`: one page per bonus, and small multiples that compare bonuses."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cfn.analysis.exams import Exam
from cfn.analysis.figures.common import decorate, mark_missing, put_title

STREAMS = {"gridworld": "#1f77b4", "taxi": "#ff7f0e", "one-hot": "#2ca02c", "blobs": "#9467bd"}
"""Colours of the streams of the question `counts`."""
BONUS, OTHER, TRUTH = "#1f77b4", "#d62728", "#444444"
"""Colours of the bonus, of the same bonus with another setting, and of the truth."""

Results = Sequence[Mapping[str, Any]]
"""Results of one question, one per seed."""


def _truth(axes: Axes, counts: Sequence[float]) -> None:
    grid = np.array([1, max(counts)])
    axes.plot(grid, grid**-0.5, color=TRUTH, linewidth=1, linestyle="--")


def _log_log(axes: Axes, bonuses: Sequence[float]) -> None:
    axes.set_xscale("log")
    if min(bonuses) > 0:  # a bonus of zero has no logarithm
        axes.set_yscale("log")


def _histograms(axes: Axes, groups: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """Draw the shares of states of one or two groups, in the same bins."""
    joined = {name: np.concatenate(values) for name, values in groups.items()}
    everything = np.concatenate(list(joined.values()))
    margin = 0.01 + 0.01 * np.ptp(everything)  # equal values have bins of a width, too
    bins = np.linspace(everything.min() - margin, everything.max() + margin, 30).tolist()
    for (name, values), colour in zip(joined.items(), (BONUS, OTHER), strict=False):
        axes.hist(values, bins, weights=np.full(len(values), 1 / len(values)), alpha=0.5, color=colour, label=name)


def draw_counts(axes: Axes, results: Results) -> None:
    """Draw the bonus against the count, a colour per stream."""
    counts, bonuses = [1.0], [1.0]
    for index, result in enumerate(results):
        for stream, points in result["data"].items():
            label = stream if index == 0 else None
            axes.plot(points["counts"], points["bonus"], ".", ms=2, alpha=0.5, color=STREAMS[stream], label=label)
            counts += points["counts"]
            bonuses += points["bonus"]
    _truth(axes, counts)
    _log_log(axes, bonuses)
    decorate(axes, "visits N", "bonus B", "counts")
    axes.legend(loc="upper right", fontsize=7, frameon=False, markerscale=3)


def draw_powers(title: str) -> Callable[[Axes, Results], None]:
    """Return a function that draws the bonus against the count, for states with counts 1, 2, 4, ..."""

    def draw(axes: Axes, results: Results) -> None:
        counts, bonuses = [1.0], [1.0]
        for result in results:
            axes.plot(result["data"]["counts"], result["data"]["bonus"], ".", ms=3, alpha=0.5, color=BONUS)
            counts += result["data"]["counts"]
            bonuses += result["data"]["bonus"]
        _truth(axes, counts)
        _log_log(axes, bonuses)
        decorate(axes, "visits N", "bonus B", title)

    return draw


def draw_unseen(axes: Axes, results: Results) -> None:
    """Draw the distribution of the bonus over visited and unvisited states."""
    _histograms(axes, {key: [result["data"][key] for result in results] for key in ("seen", "unseen")})
    decorate(axes, "bonus B", "share of states", "unseen")
    axes.legend(loc="upper right", fontsize=7, frameon=False)


def draw_speed(axes: Axes, results: Results) -> None:
    """Draw the bonus of new states, relative to the truth, against the visits to them."""
    for result in results:
        axes.plot(result["data"]["visits"], result["data"]["ratio"], color=BONUS, linewidth=0.9, alpha=0.7)
    axes.axhspan(0.8, 1.2, color="#eeeeee", zorder=0)
    axes.axhline(1, color=TRUTH, linewidth=1, linestyle="--")
    decorate(axes, "visits to a new state", "B sqrt(N)", "speed")


def draw_memory(axes: Axes, results: Results) -> None:
    """Draw the bonus of states that are no longer visited, with a full and with a small replay buffer."""
    for index, result in enumerate(results):
        for colour, key, label in ((BONUS, "curve", "full buffer"), (OTHER, "small", "small buffer")):
            if curve := result["data"][key]:
                axes.plot(curve, color=colour, linewidth=0.9, alpha=0.7, label=label if index == 0 else None)
        axes.axhline(result["data"]["truth"], color=TRUTH, linewidth=1, linestyle="--")
    axes.set_ylim(bottom=0)
    decorate(axes, "time (eighths)", "bonus B", "memory")
    axes.legend(loc="lower right", fontsize=7, frameon=False)


def draw_order(axes: Axes, results: Results) -> None:
    """Draw the bonus after visits state by state against the bonus after mixed visits."""
    for result in results:
        axes.plot(result["data"]["mixed"], result["data"]["sorted"], ".", ms=3, alpha=0.5, color=BONUS)
    largest = max(max(result["data"]["mixed"]) for result in results)
    axes.plot([0, largest], [0, largest], color=TRUTH, linewidth=1, linestyle="--")
    decorate(axes, "B, mixed order", "B, state by state", "order")


def draw_scale(axes: Axes, results: Results) -> None:
    """Draw the distribution of the factor between the bonus and the truth."""
    _histograms(axes, {"all": [result["data"]["factors"] for result in results]})
    axes.axvline(1, color=TRUTH, linewidth=1, linestyle="--")
    decorate(axes, "B sqrt(N)", "share of states", "scale")


def draw_cost(axes: Axes, results: Results) -> None:
    """Draw the milliseconds per visit, of `observe` and of `update`, by number of distinct states."""
    numbers = results[0]["numbers"]
    sizes = [key.rpartition("_")[2] for key in numbers if key.startswith("observe_ms_")]
    for shift, part, colour in ((-0.2, "observe", BONUS), (0.2, "update", OTHER)):
        means = [np.mean([r["numbers"][f"{part}_ms_{size}"] or 0 for r in results]) for size in sizes]
        axes.bar(np.arange(len(sizes)) + shift, means, 0.4, color=colour, alpha=0.7, label=part)
    axes.set_xticks(range(len(sizes)), [f"{int(size):,}" for size in sizes])
    decorate(axes, "distinct states", "CPU milliseconds", "cost")
    axes.legend(loc="upper right", fontsize=7, frameon=False)


PANELS: dict[str, Callable[[Axes, Results], None]] = {
    "counts": draw_counts,
    "decay": draw_powers("decay"),
    "unseen": draw_unseen,
    "speed": draw_speed,
    "memory": draw_memory,
    "order": draw_order,
    "noise": draw_powers("noise"),
    "scale": draw_scale,
    "cost": draw_cost,
}
"""Panel of each question."""
COMPARED = ("counts", "decay", "unseen", "speed", "memory", "noise")
"""Questions of the comparison."""


def one_page(bonus: str, exams: Sequence[Exam]) -> Figure:
    """Return the figure of one bonus: a panel per question, all seeds together."""
    figure = Figure(figsize=(10.5, 9.5), layout="constrained")
    axes = figure.subplots(3, 3).ravel()
    for panel, name in zip(axes, PANELS, strict=True):
        _draw(panel, name, exams)
    put_title(figure, f"{bonus}: {len(exams)} seed{'s' * (len(exams) != 1)}; dashed: the truth")
    return figure


def compare(groups: Mapping[str, Sequence[Exam]]) -> Figure:
    """Return small multiples: a row per bonus, a column per question."""
    figure = Figure(figsize=(2.5 * len(COMPARED), 2.3 * len(groups)), layout="constrained")
    axes = figure.subplots(len(groups), len(COMPARED), squeeze=False)
    for row, (bonus, exams) in zip(axes, groups.items(), strict=True):
        for panel, name in zip(row, COMPARED, strict=True):
            _draw(panel, name, exams)
        row[0].set_ylabel(f"{bonus}\n{row[0].get_ylabel()}", fontweight="bold", fontsize=8)
    put_title(figure, "Does the bonus count? Dashed: the truth")
    return figure


def _draw(panel: Axes, name: str, exams: Sequence[Exam]) -> None:
    results = [exam.questions[name] for exam in exams if "error" not in exam.questions.get(name, {"error": ""})]
    if results:
        PANELS[name](panel, results)
    else:
        asked = any(name in exam.questions for exam in exams)
        mark_missing(panel, name, "cannot answer" if asked else "not asked")
