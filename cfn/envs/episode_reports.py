"""Metrics that an environment reports about its episodes, and the episode after which it counts as solved.

An environment may put numbers about an episode into `info["episode_metrics"]` of its last step, by names that begin
with `explore/`. The metrics of a run are their means over all training episodes so far. Such an environment may also
have a method `is_solved(episodes, means)`, its criterion: the number of episodes after which it first returned True is
the metric `explore/solved_episode`.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from cfn.errors import UsageError
from cfn.types import Metrics

KEY = "episode_metrics"
"""Key in the `info` of the last step of an episode."""
PREFIX = "explore/"
SOLVED = "explore/solved_episode"
RESERVED = (SOLVED, "explore/states", "explore/rooms")
"""Metrics that the run computes itself."""


class EpisodeReports:
    """Means over the episodes of all environments of a run; empty if the environments report nothing.

    Args:
        is_solved: Criterion of the environment: a function of the number of episodes and the means so far; None if it
            has none.
    """

    def __init__(self, is_solved: Callable[[int, Metrics], bool] | None) -> None:
        self._is_solved = is_solved
        self._sums: Metrics = {}
        self._episodes = 0
        self._solved_episode: int | None = None

    def add(self, reported: Mapping[str, Any]) -> None:
        """Add the report of an episode, `episode_metrics` in the `info` of its last step."""
        report = {name: _number(name, value) for name, value in reported.items()}
        if self._episodes and report.keys() != self._sums.keys():
            raise UsageError(
                f"info[{KEY!r}] names {_listed(report)} after {_listed(self._sums)}: report all in each episode"
            )
        self._sums = {name: self._sums.get(name, 0.0) + value for name, value in report.items()}
        self._episodes += 1
        if self._solved_episode is None and self._is_solved and self._is_solved(self._episodes, self._means):
            self._solved_episode = self._episodes

    @property
    def metrics(self) -> Metrics:
        """Means so far, and the episode after which the environment was solved, once it was."""
        return self._means if self._solved_episode is None else {**self._means, SOLVED: self._solved_episode}

    @property
    def _means(self) -> Metrics:
        return {name: total / self._episodes for name, total in self._sums.items()}

    def state_dict(self) -> dict[str, Any]:
        return {"sums": dict(self._sums), "episodes": self._episodes, "solved": self._solved_episode}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._sums = {str(name): float(total) for name, total in state["sums"].items()}
        self._episodes = int(state["episodes"])
        self._solved_episode = None if state["solved"] is None else int(state["solved"])


def _number(name: Any, value: Any) -> float:
    """Return a reported value as a number; raise `UsageError` if its name or its value is not allowed."""
    if not str(name).startswith(PREFIX) or name in RESERVED:
        raise UsageError(
            f"info[{KEY!r}] has the name {name!r}: choose one that begins with {PREFIX}, except {_listed(RESERVED)}"
        )
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"info[{KEY!r}] has {name}={value!r}: it must be a finite number")
    return number


def _listed(names: Any) -> str:
    return ", ".join(names) or "nothing"
