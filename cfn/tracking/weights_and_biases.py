"""Mirror of a run on Weights & Biases. If W&B fails, the run continues without it."""

import csv
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import StringConstraints

from cfn.runs.folder import Run
from cfn.runs.layout import METRICS, Layout
from cfn.tracking.base import Tracker
from cfn.types import Metrics

try:
    import wandb
except ModuleNotFoundError:  # it is optional
    wandb = None  # type: ignore[assignment]

log = logging.getLogger(__name__)

_NAME_LENGTH = 128
"""Letters in the longest name that W&B accepts."""
# The names that W&B accepts; it would reject others only after the run has begun.
Name = Annotated[str, StringConstraints(min_length=1, max_length=_NAME_LENGTH, pattern=r"^[^/\\#?%:]*$")]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=64)]

INIT_SECONDS = 30
"""Seconds to wait for W&B's servers before tracking offline."""
FINISH_SECONDS = 120
"""Seconds to wait for uploads at the end; `wandb sync` can upload the rest later."""


class WandbTracker(Tracker):
    """Uploads metrics, pictures, count tables and the composed config; seeds of one setting form a group.

    Args:
        run: Run to track.
        project: W&B project.
        entity: W&B user or team; by default, the user's own.
        mode: `online`, `offline`, or `auto`: the value of WANDB_MODE, else online if logged in, else offline.
        tags: Tags in addition to environment, agent and bonus.
    """

    def __init__(
        self,
        run: Run,
        project: Name = "cfn",
        entity: str | None = None,
        mode: Literal["auto", "online", "offline"] = "auto",
        tags: list[Tag] | None = None,
    ) -> None:
        self._wandb: Any = None  # wandb.Run after a successful start
        self._on = wandb is not None  # until W&B fails or the run ends
        if not self._on:
            log.info(f"W&B is not installed (pip install 'cfn-rl[paper]' brings it): {METRICS} has everything.")
        self._shown = Path(run.shown)
        seed = f" seed={run.seed}"
        arguments = {
            "project": project,
            "entity": entity,
            "dir": str(run.folder),
            "config": run.config,
            "group": run.setting[:_NAME_LENGTH],
            "name": run.setting[: _NAME_LENGTH - len(seed)] + seed,
            "tags": [run.env[:64], run.agent[:64], run.bonus[:64], *(tags or [])],
            **_resumed(run.folder),
        }
        self._guard(lambda: self._start(mode, arguments))

    def log(self, step: int, metrics: Metrics) -> None:
        """Upload metrics."""
        self._guard(lambda: self._wandb.log({"step": step, **metrics}))

    def log_counts(self, step: int, table: Path) -> None:
        """Upload a count table."""

        def upload() -> None:
            with table.open(newline="") as file:
                header, *rows = csv.reader(file)
            numbers = [[state, *(float(number) if number else None for number in row)] for state, *row in rows]
            self._wandb.log({"step": step, "counts": wandb.Table(columns=[*header], data=numbers)})

        self._guard(upload)

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """Upload pictures."""
        self._guard(
            lambda: self._wandb.log(
                {"step": step, **{f"plots/{name}": wandb.Image(str(path)) for name, path in pictures.items()}}
            )
        )

    def finish(self, failed: bool = False) -> None:
        """Wait for uploads, up to a limit."""
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
            log.warning(f"W&B cannot be reached ({_first_line(error)}): tracking offline.")
            self._wandb = self._init("offline", arguments)
        self._wandb.define_metric("step", hidden=True)
        self._wandb.define_metric("*", step_metric="step")
        if self._wandb.settings.mode == "offline":
            own = Path(self._wandb.settings.sync_dir).name
            folder = Layout(self._shown).wandb / ("offline-run-*" if "resume" in arguments else own)
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
        """Call W&B; after its first failure log one warning and never call it again."""
        if not self._on:
            return
        try:
            call()
        except Exception as error:
            self._on = False
            log.warning(f"W&B failed ({_first_line(error)}): the run continues without it; {METRICS} has everything.")


def _resumed(folder: Path) -> dict[str, str]:
    """Return the arguments that continue the W&B run of a resumed run; W&B names a file by the id of its run."""
    files = Layout(folder).wandb.glob("*run-*/run-*.wandb")
    newest = max(files, key=lambda path: path.parent.name.partition("run-")[2], default=None)
    return {"id": newest.stem.removeprefix("run-"), "resume": "allow"} if newest else {}


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]
