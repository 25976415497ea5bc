"""When a run is saved: every so often, when it is told to stop, when an environment broke, and at its end."""

import logging
import time
from typing import Any, Protocol

from cfn import config
from cfn.checkpoint import Checkpoints
from cfn.errors import UsageError
from cfn.run import Run
from cfn.stopping import StoppedError, Stopping
from cfn.tracking.metrics_file import MetricsFile

log = logging.getLogger(__name__)


class Savable(Protocol):
    """What is asked of a training."""

    step: int

    @property
    def broken(self) -> str | None:
        """What went wrong in an environment, if the run is to stop for it."""

    def due(self, period: int) -> int:
        """How often something periodic falls into the steps just taken."""

    def state_dict(self) -> dict[str, Any]:
        """All that the run is."""


class Saving:
    """Called after every step, saves the run if it is time, and ends it if it has been told to stop.

    Args:
        keys: `checkpoint.*`.
        run: The run.
        metrics: Its metrics, of which a checkpoint knows how far they were.
        started: When the run began, on the monotonic clock; earlier by what it took before it was resumed.
        stopping: Whether it has been told to stop.
    """

    def __init__(
        self, keys: config.Checkpoint, run: Run, metrics: MetricsFile, started: float, stopping: Stopping
    ) -> None:
        self._keys, self._run, self._metrics = keys, run, metrics
        self._started, self._stopping = started, stopping
        self._checkpoints = Checkpoints(run.checkpoints, keys.keep)

    def __call__(self, training: Savable) -> None:
        """A step is done."""
        signal, broken, done = self._stopping.signal, training.broken, training.step >= self._run.config["steps"]
        ends = signal or broken or done
        if self._keys.every is not None and (ends or training.due(self._keys.every)):
            seconds = time.monotonic() - self._started
            written = {"metrics": self._metrics.sync(), "seconds": seconds, "keys": self._run.keys}
            self._checkpoints.save(training.step, training.state_dict() | {"written": written})
        if done or not (broken or signal):
            return
        hint = f": cfn resume {self._run.shown} goes on from here" if self._keys.every else ""
        if broken:
            raise UsageError(broken + (f"{hint}, with that environment made anew" if hint else ""))
        assert signal is not None, "else nothing ends it"
        log.info(f"{signal.name} at step {training.step:,}{hint}")
        raise StoppedError(signal)
