"""Scores: the returns that figures and tables compare, and warnings where they cannot be compared fully.

The score is the return of evaluations, or of training episodes averaged per iteration; an iteration is the interval
between two evaluations. If no run has the returns asked for, the others are shown. The two are never mixed in one
picture or table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np

from cfn.analysis.grouping import Group
from cfn.analysis.stats import average, moving_mean
from cfn.runs.reading import Series
from cfn.runs.record import SCORE, Record

Returns = Literal["eval", "train"]
"""Returns to show: of evaluations or of training episodes."""

_SMOOTHED_EPISODES = 20
"""Episodes per mean of training returns where there are no iterations."""


@dataclass(frozen=True)
class Scores:
    """The score of the groups in one picture or table.

    Attributes:
        returns: Returns that are shown.
        name: Name of the score in titles.
        description: Phrase for a caption: which returns, and over what they are averaged.
        of: Returns the score of each run that has one.
        groups: Groups to compare.
        by_iteration: Whether each value is the mean over an iteration, not a measurement at one step.
    """

    returns: Returns
    name: str
    description: str
    of: Callable[[Sequence[Record]], list[Series]]
    groups: Sequence[Group]
    by_iteration: bool = False

    @cached_property
    def _last_steps(self) -> set[float]:
        return {float(series.steps[-1]) for group in self.groups for series in self.of(group.runs)}

    @cached_property
    def _first_step(self) -> float:
        """First step at which all runs have a score: those evaluated more often do not count more early ones."""
        return max((float(series.steps[0]) for group in self.groups for series in self.of(group.runs)), default=0.0)

    def averages(self, runs: Sequence[Record]) -> list[float]:
        """Return each run's score, averaged over the steps of which all runs have scores."""
        series = self.of(runs)
        if not series:
            return []
        last = min(self._last_steps)
        if self.by_iteration:
            return [float(one.values[one.steps <= max(last, one.steps[0])].mean()) for one in series]
        return [average(one, last, self._first_step) for one in series]

    @property
    def averaged(self) -> str:
        """Axis label of the averages."""
        last, lengths = self._last_steps, {run.iteration for group in self.groups for run in group.runs}
        over = "the run"
        if len(last) > 1:
            over = f"the first {min(last):,.0f} steps,\nto which all runs have come"
        elif self.by_iteration and len(lengths) == 1:
            over = f"{int(min(last)) // (lengths.pop() or 1):,} iterations"
        return f"return, averaged over {over}"


def scores(groups: Sequence[Group], returns: Returns = "eval", smoothing: int = 1) -> Scores:
    """Return the score of groups: the returns asked for or, if no run has them, the others.

    Args:
        groups: Groups to compare.
        returns: Returns to show.
        smoothing: Number of iterations over which the score is averaged: each one and those before it.
    """
    evaluations = Scores(
        "eval",
        "evaluations",
        f"returns of evaluations{smoothed_over(smoothing, 'evaluations')}",
        partial(series_of, metric=SCORE, smoothing=smoothing),
        groups,
    )
    episodes = f"mean of {_SMOOTHED_EPISODES} episodes"
    training = Scores(
        "train", f"training, {episodes}", f"returns of training episodes, {episodes}", _last_episodes, groups
    )
    kinds = [evaluations, training]
    lengths = {run.iteration for group in groups for run in group.runs}
    if returns == "train":
        kinds.reverse()
        if None not in lengths:  # all runs are averaged alike, or they could not be compared
            steps = f" of {lengths.pop():,} steps" if len(lengths) == 1 else ""
            mean = f"mean of each iteration{steps}{smoothed_over(smoothing, 'iterations')}"
            iterations = partial(_iterations, smoothing=smoothing)
            kinds.insert(
                0, Scores("train", "training", f"returns of training episodes, {mean}", iterations, groups, True)
            )
    return next((kind for kind in kinds if any(kind.of(group.runs) for group in groups)), kinds[-1])


def smoothed_over(number: int, what: str) -> str:
    """Return the phrase of a caption on smoothing; empty if there is none."""
    return f", averaged over the last {number} {what}" if number > 1 else ""


def smooth(series: Series, window: int) -> Series:
    """Return a series in which each value is the mean of the last `window` values."""
    return Series(series.steps, moving_mean(series.values, window)) if window > 1 else series


def series_of(runs: Sequence[Record], metric: str, smoothing: int = 1) -> list[Series]:
    """Return a metric of each run that has it.

    Args:
        runs: Runs to read.
        metric: Name of the metric.
        smoothing: Number of values over which the metric is averaged: each one and those before it.
    """
    return [smooth(run.metrics[metric], smoothing) for run in runs if metric in run.metrics]


def goals_so_far(runs: Sequence[Record]) -> list[Series]:
    """Return the number of goals reached in training, at each evaluation of each run."""
    series = []
    for run in runs:
        goals, evaluations = run.goals, run.metrics.get(SCORE)
        if goals is not None and evaluations is not None:
            so_far = np.append(0.0, goals.values)[np.searchsorted(goals.steps, evaluations.steps, side="right")]
            series.append(Series(evaluations.steps, so_far))
    return series


def unequal(groups: Sequence[Group], returns: Returns = "eval") -> list[str]:
    """Return a sentence on each setting without a score and on each difference in length between runs.

    Args:
        groups: Settings to compare.
        returns: Returns that are shown.
    """
    return [
        sentence
        for task in dict.fromkeys(group.task for group in groups)
        for sentence in _unequal_within([group for group in groups if group.task == task], returns)
    ]


def _unequal_within(groups: Sequence[Group], returns: Returns) -> list[str]:
    """Return the sentences of `unequal` on one task."""
    sentences, ends = [], {}
    score = scores(groups, returns)
    one, other = ("evaluation", "training") if returns == "eval" else ("training return", "evaluation")
    for group in groups:
        series = score.of(group.runs)
        lacking, name = len(group.runs) - len(series), f"{group.task}, {group.label}"
        if score.returns != returns or not series:
            effect = f"{other} returns are shown instead" if series else "there is no score"
            sentences.append(f"{name}: no {one}s yet; {effect}")
        elif lacking:
            sentences.append(f"{name}: {lacking} of {len(group.runs)} seeds have no {one} yet")
        if not series:
            continue
        first_end, last_end = (end(s.steps[-1] for s in series) for end in (min, max))
        ends[group.label] = last_end
        dotted = "lines are dotted where some seeds have no data"
        if max(s.steps[0] for s in series) > first_end:
            sentences.append(f"{name}: the seeds have no steps in common; {dotted}")
        elif first_end < last_end:
            sentences.append(f"{name}: seeds end between steps {first_end:,.0f} and {last_end:,.0f}; {dotted}")
    if len(set(ends.values())) > 1:
        shortest, longest = min(ends, key=lambda label: ends[label]), max(ends, key=lambda label: ends[label])
        between = f"{shortest} at step {ends[shortest]:,.0f}, {longest} at {ends[longest]:,.0f}"
        averaged = "averages cover the steps that all of them have"
        sentences.append(f"{groups[0].task}: settings end at different steps ({between}); {averaged}")
    return sentences


def _iterations(runs: Sequence[Record], smoothing: int) -> list[Series]:
    training = (run.training_by_iteration for run in runs)
    return [smooth(series, smoothing) for series in training if series]


def _last_episodes(runs: Sequence[Record]) -> list[Series]:
    return [smooth(run.training, _SMOOTHED_EPISODES) for run in runs if run.training]
