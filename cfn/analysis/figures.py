"""The figures of experiments: several runs in one picture, laid out as in the paper."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cfn.analysis.files import Series, latest_counts, read_config, read_metrics, read_summary
from cfn.analysis.plots import decorate, show_steps

GOALS = "goals"
"""Not a metric of its own, but of `train/return`, in tasks that pay 1 at the goal and nothing before."""

COLOURS = ("#3366aa", "#dd7711", "#448844", "#aa3344", "#775599", "#777777", "#117788", "#bb8899")
BONUSES = {"cfn": "CFN", "pixelcnn": "PixelCNN", "rnd": "RND", "count": "true counts", "none": "no bonus"}


class Member(NamedTuple):
    """One run of an experiment."""

    folder: Path
    env: str
    method: str
    noise: float  # the probability that an action is replaced, or sticks
    capacity: int  # of the coin-flip buffer
    mode: str  # of an environment that has several
    counts: bool  # whether its bonus means to be a count, and so belongs on the dashed line


def draw_experiment(name: str, folders: Sequence[Path], out: Path) -> Path | None:
    """Draw an experiment's figure from the folders of its runs, if it has one; returns where it is."""
    if name not in FIGURES or not folders:
        return None
    FIGURES[name]([_member(folder) for folder in folders]).savefig(out, dpi=110)
    return out


def scatters(members: Sequence[Member]) -> Figure:
    """Figures 2, 9 and 10: predicted against true bonus, a column for each method and a row for each environment."""
    methods, envs = (list(dict.fromkeys(getattr(m, field) for m in members)) for field in ("method", "env"))
    figure = Figure(figsize=(3.6 * len(methods), 3.5 * len(envs)), layout="constrained")
    grid = figure.subplots(len(envs), len(methods), squeeze=False)
    for row, env in enumerate(envs):
        for column, method in enumerate(methods):
            runs = [m for m in members if (m.method, m.env) == (method, env)]
            title = method if len(envs) == 1 else f"{method}, {env}"
            _scatter(grid[row, column], runs, title)
    return figure


def ablation(members: Sequence[Member]) -> Figure:
    """Figure 3 (error over time, mean and standard error over seeds) above Figure 11 (a scatter for each variant)."""
    methods = list(dict.fromkeys(m.method for m in members))
    figure = Figure(figsize=(3.6 * len(methods), 7.6), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.1, 1))
    above, below = halves
    axes = above.subplots()
    for method, colour in zip(methods, cycle(COLOURS)):
        steps, mean, error = _mean_and_error([m.folder for m in members if m.method == method], "bonus/mse")
        _band(axes, steps, mean, error, colour, method)
    steps, floor, _ = _mean_and_error([m.folder for m in members], "bonus/floor_mse")
    axes.plot(steps, floor, "--", color="black", linewidth=1, label="floor: a perfect network, these coins")
    axes.set_yscale("log")
    decorate(axes, "environment steps", "mean squared error", "Count error, over visited states")
    show_steps(axes)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for panel, method in zip(below.subplots(1, len(methods), squeeze=False)[0], methods, strict=True):
        _scatter(panel, [m for m in members if m.method == method], method)
    return figure


def curves(members: Sequence[Member]) -> Figure:
    """Figures 4 and 7, left: the mean return of evaluations over time, with standard errors over seeds."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for method, colour in zip(dict.fromkeys(m.method for m in members), cycle(COLOURS)):
        runs = [m.folder for m in members if m.method == method]
        _band(
            axes, *_mean_and_error(runs, "eval/return"), colour, f"{method} ({len(runs)} seed{'s' * (len(runs) > 1)})"
        )
    if axes.dataLim.y1 <= 1:
        axes.set_ylim(-0.05, 1.05)
    decorate(axes, "environment steps", "return of an episode", "Evaluations, mean and standard error")
    show_steps(axes)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def buffers(members: Sequence[Member]) -> Figure:
    """Figure 8: learning curves, by the size of the coin-flip buffer."""
    return curves([m._replace(method=f"{m.method}, {m.capacity:,} states") for m in members])


def settings(members: Sequence[Member], columns: int) -> Figure:
    """Figures 5 and 6: for each task and mode the return of evaluations, and below it what was found in training."""
    tasks = list(dict.fromkeys((m.env, m.mode) for m in members))
    methods = dict(zip(dict.fromkeys(m.method for m in members), cycle(COLOURS)))
    columns = min(columns, len(tasks))
    rows = -(-len(tasks) // columns)
    one = len(tasks) == 1  # whose panels have room side by side
    figure = Figure(figsize=(11, 3.4) if one else (3.4 * columns, 6.6 * rows + 0.4), layout="constrained")
    grid = figure.subplots(1, 3, squeeze=False).T if one else figure.subplots(3 * rows, columns, squeeze=False)
    for panel in grid.flat:
        panel.set_visible(False)
    for i, (env, mode) in enumerate(tasks):
        panels = [grid[3 * (i // columns) + row, i % columns] for row in range(3)]
        for method, colour in methods.items():
            runs = [m.folder for m in members if (m.env, m.mode, m.method) == (env, mode, method)]
            for panel, metric in zip(panels, ("eval/return", GOALS, "explore/states"), strict=True):
                panel.set_visible(True)
                _band(panel, *_mean_and_error(runs, metric), colour, method)
        evaluations, goals, states = panels
        evaluations.set_ylim(-0.05, 1.05)
        goals.set_ylim(0, max(1.0, goals.get_ylim()[1]))
        states.set_ylim(bottom=0)
        decorate(evaluations, "", "return, evaluations", " ".join((env, mode)))
        decorate(goals, "", "goals so far, training", "")
        decorate(states, "environment steps", "states seen", "")
        for panel in panels:
            show_steps(panel)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def noise_bars(members: Sequence[Member], what: str = "probability that an action is replaced") -> Figure:
    """Figures 4 and 7, right: the return of evaluations averaged over the run, for each level of noise."""
    methods, levels = list(dict.fromkeys(m.method for m in members)), sorted({m.noise for m in members})
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(methods)
    for i, (method, colour) in enumerate(zip(methods, cycle(COLOURS))):
        means, errors = np.transpose(
            [
                _mean_over_runs([m.folder for m in members if (m.method, m.noise) == (method, level)], "eval/return")
                for level in levels
            ]
        )
        places = np.arange(len(levels)) + (i - (len(methods) - 1) / 2) * width
        axes.bar(places, means, width, yerr=errors, color=colour, label=method, capsize=3)
    axes.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
    if axes.dataLim.y1 <= 1:
        axes.set_ylim(0, 1.05)
    decorate(axes, what, "return, averaged over training", "Mean and standard error")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


FIGURES: dict[str, Callable[[Sequence[Member]], Figure]] = {
    "gridworld_counts": scatters,
    "taxi_counts": scatters,
    "zero_flips": scatters,
    "gridworld_ablation": ablation,
    "gridworld_curves": curves,
    "gridworld_noise": noise_bars,
    "montezuma_curves": curves,
    "montezuma_sticky": partial(noise_bars, what="probability that a frame repeats the action before"),
    "montezuma_buffer": buffers,
    "d4rl": partial(settings, columns=5),
    "fetch": partial(settings, columns=3),
}


def _member(folder: Path) -> Member:
    summary, config = read_summary(folder), read_config(folder)
    name, env, bonus = summary["bonus"], config["env"], config["bonus"]
    method = _method(name, bonus)
    if name == "none" and summary.get("agent") == "sac":
        method = "SAC"
    if config["agent"].get("noisy"):  # the paper's baseline, if nothing else explores
        method = "noisy Rainbow" if name == "none" else f"{method}, noisy"
    noise = env.get("action_noise", env.get("sticky", 0.0))
    return Member(
        folder, summary["env"], method, noise, bonus.get("capacity", 0), env.get("mode", ""), counts=name != "rnd"
    )


def _method(name: str, bonus: dict[str, Any]) -> str:
    """What a run's method is called: the bonus, and what it goes without."""
    without = [what for key, what in (("prior", "prior"), ("prioritize", "priorities")) if bonus.get(key) is False]
    label = BONUSES.get(name, name) + (f" without {' or '.join(without)}" if without else "")
    return "zero flips" if bonus.get("flips") == "zero" else label


def _scatter(axes: Axes, runs: Sequence[Member], title: str) -> None:
    """The states of all seeds together, each seed in its own shade."""
    top = 1.0
    for shade, run in enumerate(runs):
        table = latest_counts(run.folder)
        if table is not None:
            alpha = 0.5 if shade == 0 else 0.25
            axes.plot(table.true_bonus, table.predicted_bonus, ".", color=COLOURS[0], alpha=alpha, markersize=3)
            top = max(float(table.predicted_bonus.max()), top if run.counts else 0.0)
    if runs and runs[0].counts:
        axes.plot([0, 1], [0, 1], "--", color="black", linewidth=1)
    axes.set_xlim(0, 1.03)
    axes.set_ylim(0, 1.05 * top)
    decorate(axes, "true bonus  $1/\\sqrt{N(s)}$", "predicted bonus", title)


def _band(axes: Axes, steps: Any, mean: Any, error: Any, colour: str, label: str) -> None:
    axes.plot(steps, mean, color=colour, label=label)
    axes.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)


def _mean_over_runs(folders: Sequence[Path], metric: str) -> tuple[float, float]:
    """Mean and standard error over runs of a metric's mean over time; NaN where there are no runs."""
    means = [s.values.mean() for s in (read_metrics(folder).get(metric) for folder in folders) if s is not None]
    return float(np.mean(means or [np.nan])), float(_standard_error(np.array(means)))


def _mean_and_error(folders: Sequence[Path], metric: str) -> tuple[Any, Any, Any]:
    """Mean and standard error of a metric over runs, at the steps that all of them have."""
    series = [s for s in (_series(folder, metric) for folder in folders) if s is not None]
    common = sorted(set.intersection(*(set(s.steps) for s in series))) if series else []
    values = np.array([_at(s, common) for s in series])
    return np.array(common), values.mean(axis=0) if len(series) else np.zeros(0), _standard_error(values)


def _series(folder: Path, metric: str) -> Series | None:
    """A metric of a run over time; `GOALS` is the sum of the training returns so far, at each evaluation."""
    metrics = read_metrics(folder)
    if metric != GOALS:
        return metrics.get(metric)
    train, evaluations = metrics.get("train/return"), metrics.get("eval/return")
    if train is None or evaluations is None:
        return None
    sums = np.concatenate([[0.0], np.cumsum(train.values)])
    return Series(evaluations.steps, sums[np.searchsorted(train.steps, evaluations.steps, side="right")])


def _standard_error(values: Any) -> Any:
    """Over the first dimension, the runs'; 0 where one run leaves it unknown."""
    return values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.zeros(values.shape[1:])


def _at(series: Series, steps: Sequence[float]) -> list[float]:
    by_step = dict(zip(series.steps, series.values, strict=True))
    return [float(by_step[step]) for step in steps]
