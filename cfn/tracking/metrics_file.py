"""`metrics.jsonl`: one flat JSON object per moment, with `step` and named numbers. The truth that mirrors copy."""

import json
import os

from cfn.errors import UsageError
from cfn.run import Run
from cfn.tracking.base import Tracker
from cfn.types import Metrics


class MetricsFile(Tracker):
    """Appends each moment to the file at once, whole, so that a killed run leaves all it had written."""

    def __init__(self, run: Run) -> None:
        self._file = run.metrics.open("a", buffering=1, encoding="utf-8")
        self.latest: Metrics = {}
        """The latest value of each metric."""
        try:
            for line in run.metrics.read_text(encoding="utf-8").splitlines():  # of a run that is resumed
                self.latest.update(json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise UsageError(f"{run.metrics} has a line that is not JSON as runs write it ({error})") from error
        self.latest.pop("step", None)

    def log(self, step: int, metrics: Metrics) -> None:
        """Append a line."""
        self.latest.update(metrics)
        self._file.write(json.dumps({"step": step, **metrics}) + "\n")

    def sync(self) -> int:
        """Have on the disk what was written; returns how many bytes that are."""
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def finish(self, failed: bool = False) -> None:
        """Close the file."""
        self._file.close()
