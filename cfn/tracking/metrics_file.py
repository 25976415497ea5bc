"""`metrics.jsonl`: one flat JSON object per moment, with `step` and named numbers. The truth that mirrors copy."""

import json

from cfn.run import Run
from cfn.tracking.base import Tracker
from cfn.types import Metrics


class MetricsFile(Tracker):
    """Appends each moment to the file at once, whole, so that a killed run leaves all it had written."""

    def __init__(self, run: Run) -> None:
        self._file = run.metrics.open("a", buffering=1, encoding="utf-8")
        self.latest: Metrics = {}
        """The latest value of each metric."""

    def log(self, step: int, metrics: Metrics) -> None:
        """Append a line."""
        self.latest.update(metrics)
        self._file.write(json.dumps({"step": step, **metrics}) + "\n")

    def finish(self, failed: bool = False) -> None:
        """Close the file."""
        self._file.close()
