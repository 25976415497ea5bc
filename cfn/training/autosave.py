"""Autosave: writes the checkpoints of a run that is being trained."""

import time
from typing import Any, Protocol

from cfn.checkpoints.store import Checkpoints
from cfn.config import Checkpoint
from cfn.runs.folder import Run
from cfn.tracking.metrics_file import MetricsFile


class Resumable(Protocol):
    """A training whose state can be saved between two steps."""

    step: int

    def state_dict(self) -> dict[str, Any]:
        """Return the state of each part."""


class Autosave:
    """Writes checkpoints, if the config asks for any.

    Args:
        keys: Keys `checkpoint.*` of the config.
        run: Run to save.
        metrics: Metrics file of the run; a checkpoint records its length, for `Run.rewind`.
        started: Start of the run on the monotonic clock, less the seconds it took before it was resumed.
    """

    def __init__(self, keys: Checkpoint, run: Run, metrics: MetricsFile, started: float) -> None:
        self._enabled, self._run, self._metrics, self._started = keys.every is not None, run, metrics, started
        self._checkpoints = Checkpoints(run.files.checkpoints, keys.keep)

    def __call__(self, training: Resumable) -> None:
        """Write a checkpoint."""
        if self._enabled:
            seconds = time.monotonic() - self._started
            written = {"metrics": self._metrics.sync(), "seconds": seconds, "keys": self._run.keys}
            self._checkpoints.save(training.step, training.state_dict() | {"written": written})
