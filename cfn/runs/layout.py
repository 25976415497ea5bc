"""The files of a run folder. This is the only module that spells their names.

```
outputs/<env>/<agent>-<bonus>/<date-time>/seed=<n>/
  .hydra/          composed config, Hydra's own config, command-line overrides
  metrics.jsonl    source of truth: one JSON object per logged step
  counts/          step_XXXXXXXXX.csv: visits, true bonus, predicted bonus and arrivals of every true state
  plots/           pictures of this run
  rooms/           Montezuma's Revenge: one image of each visited room
  checkpoints/     states to resume from
  videos/          films made by `cfn eval --video`
  lock             held by the process that trains the run
  train.log        log with dates
  summary.json     names, progress and latest metrics
  wandb/           files of Weights & Biases
  tensorboard/     files of TensorBoard
  trackio          name of the run in Trackio
outputs/sweeps/<date-time>.yaml, .png    Hydra's record of a sweep, and the experiment's figure
outputs/sweeps/queue.lock                held by the command that submits Slurm jobs
outputs/sweeps/<date-time>/
  runs.json        planned runs: folder and overrides of each
  errors/          <n>.txt: why run number n could not begin
  jobs/            logs and job files of Slurm jobs
  study.db         trials of an Optuna study, with pictures of it beside
  lock             held by the command that runs the study
```
"""

import re
from dataclasses import dataclass
from pathlib import Path

METRICS = "metrics.jsonl"
"""The file that makes a folder a run folder."""
COUNT_COLUMNS = ("state", "count", "true_bonus", "predicted_bonus", "arrivals")
"""Columns of a count table. `count` is the number of visits: actions taken. Older tables have no `arrivals`."""
SWEEPS = "sweeps"
"""Folder below `outputs` that keeps one record per sweep."""
PLAN = "runs.json"
"""The file that lists the planned runs of a sweep."""

JOBS = "jobs"
"""Folder of a sweep for the logs and job files of Slurm."""
QUEUE_LOCK = "queue.lock"
"""File beside the sweeps that a command locks while it submits Slurm jobs."""

_STEP = "step_"


@dataclass(frozen=True)
class Layout:
    """Paths of the files in one run folder.

    Attributes:
        folder: Run folder.
    """

    folder: Path

    @property
    def config(self) -> Path:
        """Composed config."""
        return self.folder / ".hydra" / "config.yaml"

    @property
    def hydra(self) -> Path:
        """Hydra's own config, with the option chosen in each group."""
        return self.folder / ".hydra" / "hydra.yaml"

    @property
    def overrides(self) -> Path:
        """Overrides given on the command line."""
        return self.folder / ".hydra" / "overrides.yaml"

    @property
    def metrics(self) -> Path:
        """One JSON object per logged step."""
        return self.folder / METRICS

    @property
    def summary(self) -> Path:
        """Names, progress and latest metrics."""
        return self.folder / "summary.json"

    @property
    def log(self) -> Path:
        """Log with dates."""
        return self.folder / "train.log"

    @property
    def lock(self) -> Path:
        """File locked by the process that trains the run."""
        return self.folder / "lock"

    @property
    def counts(self) -> Path:
        """Folder of count tables."""
        return self.folder / "counts"

    @property
    def plots(self) -> Path:
        """Folder of pictures."""
        return self.folder / "plots"

    @property
    def rooms(self) -> Path:
        """Folder of room images."""
        return self.folder / "rooms"

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints."""
        return self.folder / "checkpoints"

    @property
    def wandb(self) -> Path:
        """Folder of Weights & Biases."""
        return self.folder / "wandb"

    @property
    def tensorboard(self) -> Path:
        """Folder of TensorBoard."""
        return self.folder / "tensorboard"

    @property
    def trackio(self) -> Path:
        """File with the name of the run in Trackio."""
        return self.folder / "trackio"

    def count_table(self, step: int) -> Path:
        """Return the path of the count table of a step."""
        return self.counts / f"{_STEP}{step:09}.csv"

    def count_tables(self) -> list[Path]:
        """Return the existing count tables, oldest first."""
        return sorted(path for path in self.counts.glob(f"{_STEP}*.csv") if step_of(path) is not None)

    def plot(self, name: str) -> Path:
        """Return the path of a picture."""
        return self.plots / f"{name}.png"

    def room(self, number: int) -> Path:
        """Return the path of a room's image."""
        return self.rooms / f"{number}.png"

    def video(self, step: int) -> Path:
        """Return the path of the film of a checkpoint."""
        return self.folder / "videos" / f"{_STEP}{step:09}.mp4"


@dataclass(frozen=True)
class CheckpointLayout:
    """Paths of the files in a folder of checkpoints.

    Attributes:
        folder: Folder of checkpoints.
    """

    folder: Path

    @property
    def chunks(self) -> Path:
        """Folder of large arrays, one file per content hash."""
        return self.folder / "chunks"

    def manifest(self, step: int) -> Path:
        """Return the path of the file that makes a checkpoint complete."""
        return self.folder / f"{_STEP}{step:012}.json"

    @staticmethod
    def small_arrays(manifest: Path) -> Path:
        """Return the path of the small arrays that belong to a manifest."""
        return manifest.with_suffix(".bin")

    def manifests(self) -> list[Path]:
        """Return the existing manifests, oldest first."""
        return sorted(path for path in self.folder.glob(f"{_STEP}*.json") if step_of(path) is not None)

    def files(self) -> list[Path]:
        """Return every file that belongs to some checkpoint, except chunks."""
        return list(self.folder.glob(f"{_STEP}*"))


@dataclass(frozen=True)
class SweepLayout:
    """Paths of the files of one sweep.

    Attributes:
        folder: Folder of the sweep, `outputs/sweeps/<date-time>`.
    """

    folder: Path

    @property
    def outputs(self) -> Path:
        """Folder that the paths of the sweep's runs are relative to."""
        return self.folder.parent.parent

    @property
    def record(self) -> Path:
        """Hydra's record: the config that the runs share."""
        return self.folder.with_name(f"{self.folder.name}.yaml")

    @property
    def figure(self) -> Path:
        """Figure of the experiment."""
        return self.folder.with_name(f"{self.folder.name}.png")

    @property
    def plan(self) -> Path:
        """Planned runs."""
        return self.folder / PLAN

    @property
    def jobs(self) -> Path:
        """Folder of the logs and job files of Slurm."""
        return self.folder / JOBS

    @property
    def study(self) -> Path:
        """Database of an Optuna study."""
        return self.folder / "study.db"

    @property
    def lock(self) -> Path:
        """File that the command that runs a study locks."""
        return self.folder / "lock"

    def error(self, number: int) -> Path:
        """Return the path of the file that says why a run could not begin."""
        return self.folder / "errors" / f"{number}.txt"


def step_of(path: Path) -> int | None:
    """Return the step in a file name such as `step_000000100.csv`; None if there is none."""
    number = path.stem.removeprefix(_STEP)
    return int(number) if path.stem.startswith(_STEP) and re.fullmatch("[0-9]{1,18}", number) else None
