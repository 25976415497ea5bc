"""The tally: on how many tasks each method is ahead of each other method.

A method wins a task against another if its mean score is higher and the 95% interval of the difference does not contain
0. If the interval contains 0, or a setting has a single seed, the task is a tie.
"""

import csv
import io
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cfn.analysis.grouping import Group
from cfn.analysis.markdown import markdown_table, with_interval
from cfn.analysis.scores import Scores
from cfn.analysis.two_sample import FEW_SEEDS, TOO_NARROW, Interval, Samples, difference, improvement, samples

MAX_METHODS = 12
"""Largest number of methods with a tally: of more, the list of pairs would be too long to read."""


class Balance(NamedTuple):
    """Numbers of tasks on which A is compared with B, is ahead, is behind, wins, ties and loses.

    A is ahead if its mean is higher; it wins if, moreover, the interval of the difference does not contain 0.
    """

    tasks: int
    ahead: int
    behind: int
    wins: int
    ties: int
    losses: int


class Pair(NamedTuple):
    """Two methods, over the tasks on which both have a score.

    Attributes:
        a: Name of the first method.
        b: Name of the second method.
        balance: Wins, ties and losses of the first method.
        improvement: Probability of improvement of the first method over the second.
        fewest_seeds: Smallest number of seeds of either method on any task.
    """

    a: str
    b: str
    balance: Balance
    improvement: Interval
    fewest_seeds: int


def balance(differences: Iterable[Interval]) -> Balance:
    """Return the balance of differences A - B, one per task."""
    ahead = behind = wins = ties = losses = 0
    for one in differences:
        ahead += one.centre > 0
        behind += one.centre < 0
        wins += one.low > 0  # False if the bound is NaN
        losses += one.high < 0
        ties += not (one.low > 0 or one.high < 0)
    return Balance(wins + ties + losses, ahead, behind, wins, ties, losses)


def tally(groups: Sequence[Group], score: Mapping[str, Scores]) -> list[Pair]:
    """Return every pair of methods that have a task in common; none if there are more than `MAX_METHODS`.

    Args:
        groups: Settings to compare. A setting is the same method as one of another task if their labels are equal.
        score: Score of each task.
    """
    averages: dict[str, dict[str, list[float]]] = {}
    for one in groups:
        if found := score[one.task].averages(one.runs):
            averages.setdefault(one.label, {})[one.task] = found
    if len(averages) > MAX_METHODS:
        return []
    pairs = []
    for (a, of_a), (b, of_b) in itertools.combinations(averages.items(), 2):
        if tasks := [samples(of_a[task], of_b[task]) for task in of_a if task in of_b]:
            pairs.append(_pair(a, b, tasks))
    return pairs


def as_markdown(pairs: Sequence[Pair]) -> str:
    """Return the tally as Markdown, with its legend."""
    header = ("A", "B", "A ahead", "B ahead", "wins of A", "ties", "losses of A", "P(A > B)")
    lines = [
        (
            pair.a,
            pair.b,
            f"{pair.balance.ahead} of {pair.balance.tasks}",
            f"{pair.balance.behind} of {pair.balance.tasks}",
            *map(str, pair.balance[3:]),
            with_interval(*pair.improvement),
        )
        for pair in pairs
    ]
    legend = (
        "Tasks on which A's or B's mean area is higher, and wins, ties and losses of A: a tie if the 95% bootstrap "
        "interval of the difference contains 0, or for a single seed. P(A > B): probability of improvement, the chance "
        "that a run of A scores higher than a run of B (equal scores count one half), averaged over tasks, with its "
        "95% stratified bootstrap interval."
    )
    few = f" {TOO_NARROW}." if min(pair.fewest_seeds for pair in pairs) < FEW_SEEDS else ""
    return f"{markdown_table(header, lines, names=2)}\n\n{legend}{few}\n"


def as_csv(pairs: Iterable[Pair]) -> str:
    """Return the tally as CSV; unknown bounds are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    bounds = [f"improvement{end}" for end in ("", "_low", "_high")]
    writer.writerow(["a", "b", "tasks", "a_ahead", "b_ahead", "wins", "ties", "losses", *bounds])
    for pair in pairs:
        numbers = ["" if math.isnan(value) else f"{value:.6g}" for value in pair.improvement]
        writer.writerow([pair.a, pair.b, *pair.balance, *numbers])
    return out.getvalue()


def _pair(a: str, b: str, tasks: Sequence[Samples]) -> Pair:
    result = balance(difference([task]) for task in tasks)
    return Pair(a, b, result, improvement(tasks), min(len(scores) for task in tasks for scores in task))
