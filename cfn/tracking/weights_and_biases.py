"""Weights & Biases, as a mirror: whatever goes wrong with it, the run goes on."""

import csv
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import wandb
from pydantic import StringConstraints

from cfn.run import Run
from cfn.tracking.base import Tracker
from cfn.types import Metrics

log = logging.getLogger(__name__)

# What W&B accepts; it would refuse others only once the run has begun.
Name = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^/\\#?%:]*$")]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=64)]

INIT_SECONDS = 30
"""How long to wait for W&B's servers before the run goes on offline."""
FINISH_SECONDS = 120
"""How long to wait at the end for uploads; what is left can be uploaded with `wandb sync`."""


class WandbTracker(Tracker):
    """Curves against environment steps, pictures, count tables and the composed config, one group per setting.

    Args:
        run: The run that is tracked.
        project: W&B's project.
        entity: W&B's user or team; by default the user's own.
        mode: `online`, `offline`, or `auto`: online when logged in, offline otherwise. WANDB_MODE goes before `auto`.
        tags: Tags beside those of environment, agent and bonus.
    """

    def __init__(
        self,
        run: Run,
        project: Name = "cfn",
        entity: str | None = None,
        mode: Literal["auto", "online", "offline"] = "auto",
        tags: list[Tag] | None = None,
    ) -> None:
        self._wandb: Any = None  # wandb.Run, once there is one
        self._on = True  # until W&B fails, or the run is over
        self._shown = Path(run.shown)
        arguments = {
            "project": project,
            "entity": entity,
            "dir": str(run.folder),
            "config": run.config,
            "group": run.setting[:128],  # W&B takes no longer name
            "name": f"{run.setting[:110]} seed={run.seed}",
            "tags": [run.env[:64], run.agent[:64], run.bonus[:64], *(tags or [])],
            **_resumed(run.folder),
        }
        self._guard(lambda: self._start(mode, arguments))

    def log(self, step: int, metrics: Metrics) -> None:
        """Mirror a row of metrics."""
        self._guard(lambda: self._wandb.log({"step": step, **metrics}))

    def log_counts(self, step: int, table: Path) -> None:
        """Mirror the scatter, as a table."""

        def upload() -> None:
            with table.open(newline="") as file:
                header, *rows = csv.reader(file)
            numbers = [[state, int(count), *map(float, bonuses)] for state, count, *bonuses in rows]
            self._wandb.log({"step": step, "counts": wandb.Table(columns=[*header], data=numbers)})

        self._guard(upload)

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """Mirror the pictures."""
        self._guard(
            lambda: self._wandb.log(
                {"step": step, **{f"plots/{name}": wandb.Image(str(path)) for name, path in pictures.items()}}
            )
        )

    def finish(self, failed: bool = False) -> None:
        """Wait for the uploads, though not for ever."""
        self._guard(lambda: self._wandb.finish(exit_code=int(failed)))
        self._on = False

    @staticmethod
    def _chosen(mode: str) -> str:
        if mode == "auto":
            return os.environ.get("WANDB_MODE") or ("online" if wandb.login(prompt=False) else "offline")
        return mode

    def _start(self, mode: str, arguments: dict[str, Any]) -> None:
        try:
            self._wandb = self._init(self._chosen(mode), arguments)
        except Exception as error:
            if mode == "offline":
                raise
            log.warning(f"W&B cannot be reached ({_first_line(error)}): the run is tracked offline.")
            self._wandb = self._init("offline", arguments)
        self._wandb.define_metric("step", hidden=True)
        self._wandb.define_metric("*", step_metric="step")
        if self._wandb.settings.mode == "offline":
            own = Path(self._wandb.settings.sync_dir).name
            folder = self._shown / "wandb" / ("offline-run-*" if "resume" in arguments else own)
            log.info(f"W&B: offline. To upload the run:  wandb sync {folder}")
        elif self._wandb.url:
            log.info(f"W&B: online, at {self._wandb.url}")

    @staticmethod
    def _init(mode: str, arguments: dict[str, Any]) -> Any:
        settings = wandb.Settings(
            silent=True, console="off", init_timeout=INIT_SECONDS, finish_timeout=FINISH_SECONDS, login_timeout=0
        )
        return wandb.init(mode=mode, settings=settings, reinit="create_new", **arguments)  # type: ignore[arg-type]

    def _guard(self, call: Callable[[], None]) -> None:
        """Make a call to W&B; at the first failure say so once, and leave W&B alone from then on."""
        if not self._on:
            return
        try:
            call()
        except Exception as error:
            self._on = False
            log.warning(f"W&B failed ({_first_line(error)}): the run goes on without it. metrics.jsonl has everything.")


def _resumed(folder: Path) -> dict[str, str]:
    """A resumed run goes on as the W&B run that it was, whose id names the file in each folder that W&B made for it."""
    files = (folder / "wandb").glob("*run-*/run-*.wandb")
    newest = max(files, key=lambda path: path.parent.name.partition("run-")[2], default=None)
    return {"id": newest.stem.removeprefix("run-"), "resume": "allow"} if newest else {}


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]
