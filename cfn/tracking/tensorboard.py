"""Mirror of a run for TensorBoard: `tensorboard --logdir outputs` shows all runs."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cfn.errors import needs_extra
from cfn.runs.folder import Run
from cfn.runs.reading import flat
from cfn.tracking.base import Tracker
from cfn.types import Metrics

log = logging.getLogger(__name__)

SCORE = "eval/return"
"""Metric that TensorBoard's table of hyperparameters shows."""


class TensorBoardTracker(Tracker):
    """Writes metrics, pictures and the config to the folder `tensorboard` of the run.

    The config appears as a text and as hyperparameters. Rows that a resumed run writes again replace the old
    ones.

    Args:
        run: Run to track.
        flush_seconds: Seconds between writes to the disk.
    """

    def __init__(self, run: Run, flush_seconds: int = 30) -> None:
        with needs_extra("tensorboard"):
            import tensorboard  # noqa: F401  # the import below fails with a longer message
        self._run, self._flush_seconds = run, flush_seconds
        self._writer: Any = None

    def log(self, step: int, metrics: Metrics) -> None:
        """Write metrics."""
        writer = self._open(step)
        for name, value in metrics.items():
            writer.add_scalar(name, value, step)

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """Write pictures as they are: PNG files are not decoded."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        writer = self._open(step)
        for name, path in pictures.items():
            if path.suffix == ".png":
                image = Summary.Image(encoded_image_string=path.read_bytes())
                summary = Summary(value=[Summary.Value(tag=f"plots/{name}", image=image)])
                writer._get_file_writer().add_summary(summary, step)

    def finish(self, failed: bool = False) -> None:
        """Write what is left, and close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self, step: int) -> Any:
        """Return the writer, opened at the first row: TensorBoard must know where a resumed run begins."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter
            from torch.utils.tensorboard.summary import hparams

            folder = self._run.files.tensorboard
            resumed = folder.exists()
            self._writer = SummaryWriter(
                str(folder), purge_step=step if resumed else None, flush_secs=self._flush_seconds
            )
            log.info(f"TensorBoard: tensorboard --logdir {Path(self._run.shown) / folder.name}")
            if not resumed:
                text = yaml.safe_dump(self._run.config, sort_keys=False)
                self._writer.add_text("config", f"```yaml\n{text}\n```")
                for summary in hparams(hyperparameters(self._run.config), {SCORE: 0.0}):  # type: ignore[no-untyped-call]
                    self._writer._get_file_writer().add_summary(summary)
        return self._writer


def hyperparameters(config: Mapping[str, Any]) -> dict[str, bool | float | str]:
    """Return the keys of a config in command-line form (`bonus.lr`), with values that TensorBoard accepts."""
    return {key: value if isinstance(value, bool | int | float | str) else str(value) for key, value in flat(config)}
