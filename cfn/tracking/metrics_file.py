"""`metrics.jsonl`, the source of truth: one flat JSON object per line, with `step` and named numbers."""

import json
import os

from cfn.errors import UsageError
from cfn.runs.folder import Run
from cfn.tracking.base import Tracker
from cfn.types import Metrics


class MetricsFile(Tracker):
    """Appends a line per call of `log`, so that a killed run keeps everything logged before."""

    def __init__(self, run: Run) -> None:
        self._file = run.files.metrics.open("a", buffering=1, encoding="utf-8")
        self.latest: Metrics = {}
        """Latest value of each metric."""
        try:
            for line in run.files.metrics.read_text(encoding="utf-8").splitlines():  # of a resumed run
                self.latest.update(json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise UsageError(f"{run.files.metrics} has a line that is not a JSON object ({error})") from error
        self.latest.pop("step", None)

    def log(self, step: int, metrics: Metrics) -> None:
        """Append a line."""
        self.latest.update(metrics)
        self._file.write(json.dumps({"step": step, **metrics}) + "\n")

    def sync(self) -> int:
        """Sync the file to disk and return its size in bytes."""
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def finish(self, failed: bool = False) -> None:
        """Close the file."""
        self._file.close()
