"""Trackers: the interface that the training loop reports to, and trackers that pass everything on to others."""

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cfn import schema
from cfn.errors import one_line
from cfn.runs.folder import Run
from cfn.runs.layout import METRICS
from cfn.types import Array, Metrics

log = logging.getLogger(__name__)


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


class Guarded(Tracker):
    """Passes everything on to a tracker. If the tracker fails, one warning is logged and the run continues without it.

    Args:
        tracker: Tracker that may fail.
    """

    def __init__(self, tracker: Tracker) -> None:
        self._tracker, self._works = tracker, True

    def tick(self, step: int) -> None:
        """Pass on the current step."""
        self._call(self._tracker.tick, step)

    def log(self, step: int, metrics: Metrics) -> None:
        """Pass on metrics."""
        self._call(self._tracker.log, step, metrics)

    def evaluating(self, done: float) -> None:
        """Pass on the progress of an evaluation."""
        self._call(self._tracker.evaluating, done)

    def evaluated(self, step: int, rooms: Mapping[int, Array]) -> None:
        """Pass on the end of an evaluation."""
        self._call(self._tracker.evaluated, step, rooms)

    def log_counts(self, step: int, table: Path) -> None:
        """Pass on a count table."""
        self._call(self._tracker.log_counts, step, table)

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """Pass on pictures."""
        self._call(self._tracker.log_pictures, step, pictures)

    def finish(self, failed: bool = False) -> None:
        """Pass on the end of the run."""
        self._call(self._tracker.finish, failed)

    def _call(self, method: Callable[..., None], *arguments: Any) -> None:
        if not self._works:
            return
        try:
            method(*arguments)
        except Exception as error:  # a tracker may raise anything, and the run is worth more than its mirror
            self._works = False
            name = type(self._tracker).__name__
            log.warning(f"{name} failed ({one_line(error)}): the run continues without it; {METRICS} has everything.")
            log.debug("traceback:", exc_info=error)


def several(run: Run, **trackers: Any) -> Tracker:
    """Return one tracker for several: `tracker=several`.

    Args:
        run: Run to track.
        wandb: Weights & Biases, with the keys of `tracker=wandb`.
        tensorboard: TensorBoard, with the keys of `tracker=tensorboard`.
        **trackers: Further trackers by name, or their configs.
    """
    built = [
        keys if isinstance(keys, Tracker) else schema.component(f"tracker.{name}", name, keys, ("run",)).build(run=run)
        for name, keys in trackers.items()
    ]
    return Trackers([Guarded(tracker) for tracker in built])
