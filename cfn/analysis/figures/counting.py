"""Count errors and count tables of several runs, all counted in the same way.

The figures of the paper count arrivals (s_t+1): the first state of an episode is not counted, its last state is. Other
figures count visits (s_t), the actions taken in a state. Runs of older versions have no arrivals: a figure with such a
run counts visits, and says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from cfn.analysis.grouping import Group
from cfn.analysis.scores import series_of, smooth, smoothed_over
from cfn.runs.reading import CountTable, Series
from cfn.runs.record import ARRIVAL_ERROR, ERROR, FLOOR, Record

Counted = Literal["visits", "arrivals"]
"""How to count states: by actions taken in them, or by arrivals."""
ErrorMeasure = Literal["mse", "rmse"]
"""Error over states: mean of the squares, or its root."""

MEASURES: dict[ErrorMeasure, str] = {"mse": "mean squared error", "rmse": "root mean squared error"}
COUNTED_STATES: dict[Counted, str] = {"visits": "visited states", "arrivals": "states arrived in"}
_COUNTS: dict[Counted, str] = {"visits": "actions taken in s", "arrivals": "arrivals in s"}


@dataclass(frozen=True)
class CountErrors:
    """Count errors, read in the same way from all runs of a figure.

    Attributes:
        measure: Mean of the squares, or its root.
        counted: Counts that the bonus is compared with.
        smoothing: Number of evaluations over which the error is averaged: each one and those before it.
        lacking: Whether arrivals were asked for, and some runs have none.
    """

    measure: ErrorMeasure
    counted: Counted
    smoothing: int
    lacking: bool

    def of(self, runs: Sequence[Record]) -> list[Series]:
        """Return the error of each run that has one."""
        return self._measured(runs, ARRIVAL_ERROR if self.counted == "arrivals" else ERROR)

    def floor(self, runs: Sequence[Record]) -> list[Series]:
        """Return the error over visited states that a perfect network would have, of each run that has one."""
        return self._measured(runs, FLOOR)

    @property
    def description(self) -> str:
        """Phrase for a caption."""
        over = f"{MEASURES[self.measure]} over {COUNTED_STATES[self.counted]}{_excuse(self.lacking)}"
        floor = "" if self.counted == "visits" else f" (floor: over {COUNTED_STATES['visits']})"
        return over + floor + smoothed_over(self.smoothing, "evaluations")

    def _measured(self, runs: Sequence[Record], metric: str) -> list[Series]:
        series = series_of(runs, metric)
        if self.measure == "rmse":  # of each run, before means over evaluations and seeds
            series = [Series(one.steps, np.sqrt(np.maximum(one.values, 0))) for one in series]
        return [smooth(one, self.smoothing) for one in series]


def count_errors(groups: Sequence[Group], measure: ErrorMeasure, counted: Counted, smoothing: int) -> CountErrors:
    """Return the count errors of groups: over arrivals if asked for and all runs have them, else over visits.

    Args:
        groups: Groups to compare.
        measure: Mean of the squares, or its root.
        counted: Counts to compare with.
        smoothing: Number of evaluations over which the error is averaged.
    """
    with_error = [run.metrics for group in groups for run in group.runs if ERROR in run.metrics]
    lacking = counted == "arrivals" and not all(
        ARRIVAL_ERROR in one and len(one[ARRIVAL_ERROR].steps) == len(one[ERROR].steps)  # older versions lack some
        for one in with_error
    )
    return CountErrors(measure, "visits" if lacking else counted, smoothing, lacking)


class CountTables(NamedTuple):
    """Count tables of several settings, all with the same kind of counts.

    Attributes:
        of: Tables of each setting.
        description: Phrase for a caption.
    """

    of: list[list[CountTable]]
    description: str


def count_alike(tables: Sequence[Sequence[CountTable]], counted: Counted) -> CountTables:
    """Return count tables by arrivals, if asked for and if all of them have arrivals; otherwise by visits.

    Args:
        tables: Tables of each setting.
        counted: Counts to use.
    """
    arrived = [[table.arrived for table in some if table.arrived is not None] for some in tables]
    lacking = counted == "arrivals" and sum(map(len, arrived)) < sum(map(len, tables))
    used: Counted = "visits" if lacking else counted
    chosen = arrived if used == "arrivals" else [list(some) for some in tables]
    return CountTables(chosen, f"N(s): {_COUNTS[used]}{_excuse(lacking)}")


def leave_out(table: CountTable, state: tuple[int, ...]) -> CountTable:
    """Return a count table without one state."""
    if table.states.shape[1:] != (len(state),):
        return table
    rest = table.only((table.states != state).any(axis=1))
    return rest if table.arrived is None else rest._replace(arrived=leave_out(table.arrived, state))


def newest_tables(runs: Sequence[Record]) -> list[CountTable]:
    """Return the newest count table of each run that has one."""
    return [table for run in runs if (table := run.newest_table()) is not None]


def steps_of_tables(tables: Sequence[CountTable]) -> str:
    """Return the step or range of steps of count tables, as text for a title."""
    first, last = (end(table.step for table in tables) for end in (min, max))
    return f"after {first:,} steps" if first == last else f"after {first:,} to {last:,} steps"


def _excuse(lacking: bool) -> str:
    return " (not all runs counted arrivals)" if lacking else ""
