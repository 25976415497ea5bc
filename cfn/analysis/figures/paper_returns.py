"""Figures 4 to 8 of the paper: returns over steps, and averaged over the run."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cfn.analysis.experiments import Members
from cfn.analysis.figures.common import decorate, mark_missing, show_steps
from cfn.analysis.figures.legends import add_below, describe_statistic, label_with_seeds
from cfn.analysis.figures.panels import Style, assign_looks, draw_bars, draw_curve, limit_to_one
from cfn.analysis.figures.titles import names_of, title_of, title_of_tasks
from cfn.analysis.grouping import Group, is_level
from cfn.analysis.scores import Returns, Scores, goals_so_far, scores, series_of
from cfn.errors import UsageError
from cfn.runs.record import DISCOVERIES, STATES

_UNSCORED: dict[Returns, str] = {"eval": "no evaluation has scored", "train": "no training episode has scored"}


def paper_curves(found: Members, style: Style) -> Figure:
    """Return Figures 4 and 7, left, and 8: returns over steps."""
    groups = found.groups
    score, names = scores(groups, style.score, style.smoothing), names_of(groups)
    figure, (axes, *explored) = _score_and_states_panels(score)
    looks = assign_looks(names.values())
    for one in groups:
        series, name = score.of(one.runs), names[id(one)]
        label = label_with_seeds(name, len(series), len(one.runs))
        draw_curve(axes, series, len(one.runs), style, looks[name], label)
        for panel in explored:
            draw_curve(panel, series_of(one.runs, STATES), len(one.runs), style, looks[name], label)
    limit_to_one(axes, -0.05)
    decorate(axes, "environment steps", "return of an episode", f"{title_of_tasks(groups)}: {score.name}")
    show_steps(axes)
    for panel in explored:
        panel.set_ylim(bottom=0)
        decorate(panel, "environment steps", DISCOVERIES[STATES], _UNSCORED[score.returns])
        show_steps(panel)
    add_below(figure, describe_statistic(style.stat, groups), score.description)
    return figure


def paper_task_grid(found: Members, style: Style, columns: int) -> Figure:
    """Return Figures 5 and 6: returns over steps, a panel per task and mode; tasks without runs keep their panel.

    Args:
        found: Runs of the experiment.
        style: What to draw, and how.
        columns: Panels side by side.
    """
    groups, tasks = found.groups, found.tasks
    drawn = {one.task for one in groups}
    if len(drawn) == 1:
        return paper_one_task(found, style)
    rows = -(-len(tasks) // columns)
    figure = Figure(figsize=(3.5 * columns, 2.7 * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    looks, score = assign_looks(one.label for one in groups), scores(groups, style.score, style.smoothing)
    for axes in grid.flat[len(tasks) :]:
        axes.set_visible(False)
    for i, (axes, task) in enumerate(zip(grid.flat, tasks, strict=False)):
        here = [one for one in groups if one.task == task]
        if not here:
            mark_missing(axes, title_of(task), "no run")
            continue
        for one in here:
            draw_curve(axes, score.of(one.runs), len(one.runs), style, looks[one.label], one.label)
        axes.set_ylim(-0.05, 1.05)
        lowest = drawn.isdisjoint(tasks[i + columns :: columns])
        leftmost = drawn.isdisjoint(tasks[i - i % columns : i])
        y_label = f"return, {score.name}" if leftmost else ""
        decorate(axes, "environment steps" if lowest else "", y_label, title_of(task))
        show_steps(axes)
    add_below(figure, describe_statistic(style.stat, groups), score.description)
    return figure


def paper_one_task(found: Members, style: Style) -> Figure:
    """Return one task of Figure 5 or 6: returns, goals reached in training, and states seen."""
    groups = found.groups
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    returns, goals, states = figure.subplots(1, 3)
    looks, score = assign_looks(one.label for one in groups), scores(groups, style.score, style.smoothing)
    for one in groups:
        all_series = (score.of(one.runs), goals_so_far(one.runs), series_of(one.runs, STATES))
        for axes, series in zip((returns, goals, states), all_series, strict=True):
            draw_curve(axes, series, len(one.runs), style, looks[one.label], one.label)
    returns.set_ylim(-0.05, 1.05)
    goals.set_ylim(0, max(1.0, goals.get_ylim()[1]))
    states.set_ylim(bottom=0)
    decorate(returns, "environment steps", f"return, {score.name}", title_of(groups[0].task))
    decorate(goals, "environment steps", "goals so far, training", "")
    decorate(states, "environment steps", "states seen", "")
    for axes in (returns, goals, states):
        show_steps(axes)
    add_below(figure, describe_statistic(style.stat, groups), score.description)
    return figure


def paper_noise_bars(found: Members, style: Style, key: str, x_label: str) -> Figure:
    """Return Figures 4 and 7, right: returns, averaged over the run, for each level of noise.

    Args:
        found: Runs of the experiment.
        style: What to draw, and how.
        key: Config key of the noise.
        x_label: Label of the x axis.
    """
    groups = [one for one in found.groups if is_level(one.first.value(key))]
    if not groups:
        raise UsageError(f"{key}: none of the runs has a number for this key, so this figure has no bars to draw")
    score, names = scores(groups, style.score), names_of(groups, key)
    heights: dict[str, dict[float, list[float]]] = {}
    seen: dict[str, dict[float, list[float]]] = {}
    for one in groups:
        level = float(one.first.value(key))
        states = [float(series.values[-1]) for series in series_of(one.runs, STATES)]
        heights.setdefault(names[id(one)], {})[level] = score.averages(one.runs)
        seen.setdefault(names[id(one)], {})[level] = states
    figure, (axes, *explored) = _score_and_states_panels(score)
    draw_bars(axes, heights, style)
    limit_to_one(axes, 0.0)
    decorate(axes, x_label, score.averaged, f"{title_of_tasks(groups)}: {score.name}")
    for panel in explored:
        draw_bars(panel, seen, style)
        decorate(panel, x_label, f"{DISCOVERIES[STATES]}, at the end", _UNSCORED[score.returns])
    add_below(figure, describe_statistic(style.stat, groups), score.description)
    return figure


def paper_buffer_sizes(found: Members, style: Style) -> Figure:
    """Return Figure 8: learning curves by capacity of the coin-flip replay buffer."""
    key, named = "bonus.capacity", []
    for one in found.groups:
        size = one.first.value(key)
        states = f"{size if is_level(size) else 0:,} states"
        named.append(Group(one.task, f"{one.label_without(key)}, {states}", one.runs, {}))
    return paper_curves(found._replace(groups=named), style)


def _score_and_states_panels(score: Scores) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure with a panel for scores and, while all scores are 0, a second panel for states seen."""
    scored = any(series.values.any() for one in score.groups for series in score.of(one.runs))
    columns = 1 if scored or not any(series_of(one.runs, STATES) for one in score.groups) else 2
    figure = Figure(figsize=(1 + 5 * columns, 4.2), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]
