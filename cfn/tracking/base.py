"""What the loop tells of a run, and the trackers that listen."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cfn.run import Run
from cfn.types import Metrics


class Tracker:
    """Hears of everything and writes down nothing: `tracker=none`, and the base of those that do.

    Args:
        run: The run that is tracked.
    """

    def __init__(self, run: Run) -> None:
        del run

    def tick(self, step: int) -> None:
        """The run has come to this step. Called at every one of them, so it has to be cheap."""

    def log(self, step: int, metrics: Metrics) -> None:
        """Named numbers of this moment."""

    def log_counts(self, step: int, table: Path) -> None:
        """The table of true counts and predicted bonuses at this step was written."""

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """These pictures were drawn."""

    def finish(self, failed: bool = False) -> None:
        """Nothing more will come."""


class Trackers(Tracker):
    """Several trackers as one."""

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self._trackers = list(trackers)

    def tick(self, step: int) -> None:
        """Tell all."""
        for tracker in self._trackers:
            tracker.tick(step)

    def log(self, step: int, metrics: Metrics) -> None:
        """Tell all."""
        for tracker in self._trackers:
            tracker.log(step, metrics)

    def log_counts(self, step: int, table: Path) -> None:
        """Tell all."""
        for tracker in self._trackers:
            tracker.log_counts(step, table)

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """Tell all."""
        for tracker in self._trackers:
            tracker.log_pictures(step, pictures)

    def finish(self, failed: bool = False) -> None:
        """Tell all."""
        for tracker in self._trackers:
            tracker.finish(failed)
