"""Trackers: the interface that the training loop reports to, and a tracker that passes everything on to others."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from cfn.runs.folder import Run
from cfn.types import Array, Metrics


class Tracker:
    """Receives everything and records nothing: `tracker=none`, and the base class of all trackers.

    Args:
        run: Run to track.
    """

    def __init__(self, run: Run) -> None:
        del run

    def tick(self, step: int) -> None:
        """Receive the current step. Called at every step, so it must be cheap."""

    def log(self, step: int, metrics: Metrics) -> None:
        """Receive metrics of a step."""

    def evaluating(self, done: float) -> None:
        """Receive the progress of an evaluation, from 0 to 1. Called at every step of it, so it must be cheap."""

    def evaluated(self, step: int, rooms: Mapping[int, Array]) -> None:
        """Receive the end of an evaluation, after its metrics and its count table were written.

        Args:
            step: Agent steps so far.
            rooms: First image of each room, in games with rooms.
        """

    def log_counts(self, step: int, table: Path) -> None:
        """Receive the path of a count table."""

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """Receive the paths of new pictures, by name."""

    def finish(self, failed: bool = False) -> None:
        """Receive the end of the run."""


class Trackers(Tracker):
    """Passes everything on to several trackers, in order."""

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self._trackers = list(trackers)

    def tick(self, step: int) -> None:
        """Pass on the current step."""
        for tracker in self._trackers:
            tracker.tick(step)

    def log(self, step: int, metrics: Metrics) -> None:
        """Pass on metrics."""
        for tracker in self._trackers:
            tracker.log(step, metrics)

    def evaluating(self, done: float) -> None:
        """Pass on the progress of an evaluation."""
        for tracker in self._trackers:
            tracker.evaluating(done)

    def evaluated(self, step: int, rooms: Mapping[int, Array]) -> None:
        """Pass on the end of an evaluation."""
        for tracker in self._trackers:
            tracker.evaluated(step, rooms)

    def log_counts(self, step: int, table: Path) -> None:
        """Pass on a count table."""
        for tracker in self._trackers:
            tracker.log_counts(step, table)

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """Pass on pictures."""
        for tracker in self._trackers:
            tracker.log_pictures(step, pictures)

    def finish(self, failed: bool = False) -> None:
        """Pass on the end of the run, to all trackers even if one of them fails."""
        with contextlib.ExitStack() as calls:  # calls in reverse order
            for tracker in reversed(self._trackers):
                calls.callback(tracker.finish, failed)
