"""Mirror of a run for Trackio, a local dashboard: `trackio show` shows all runs of a project."""

import contextlib
import io
import logging
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import StringConstraints

from cfn.errors import needs_extra
from cfn.runs.folder import Run
from cfn.runs.reading import flat
from cfn.tracking.base import Tracker
from cfn.types import Metrics

log = logging.getLogger(__name__)

Project = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[\w\- ]+$")]


class TrackioTracker(Tracker):
    """Writes metrics, pictures and the config to Trackio's database on this machine; seeds of one setting form a group.

    A resumed run continues its Trackio run. Rows that Trackio has already are not written again.

    Args:
        run: Run to track.
        project: Trackio project.
    """

    def __init__(self, run: Run, project: Project = "cfn") -> None:
        with needs_extra("trackio"):
            import trackio  # noqa: F401
        self._run, self._project = run, project
        self._mirror: Any = None
        self._last_step = -1

    def log(self, step: int, metrics: Metrics) -> None:
        """Write metrics."""
        self._log(step, dict(metrics))

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """Write pictures."""
        import trackio

        shown = {f"plots/{name}": trackio.Image(path) for name, path in pictures.items() if path.suffix == ".png"}
        if shown:
            self._log(step, shown)

    def finish(self, failed: bool = False) -> None:
        """Write what is left."""
        if self._mirror is not None:
            import trackio

            with _silent():
                trackio.finish()  # type: ignore[no-untyped-call]
            self._mirror = None

    def _log(self, step: int, values: dict[str, Any]) -> None:
        mirror = self._open()
        if step > self._last_step:
            mirror.log(values, step=step)

    def _open(self) -> Any:
        """Return the Trackio run, opened at the first row: a run that fails before leaves none."""
        if self._mirror is None:
            import trackio
            from trackio.sqlite_storage import SQLiteStorage

            name = self._name()
            with _silent():
                self._mirror = trackio.init(
                    project=self._project,
                    name=name,
                    group=self._run.setting,
                    config=dict(flat(self._run.config)),
                    resume="allow",
                    embed=False,
                    auto_log_cpu=False,
                    auto_log_gpu=False,
                )
            last_step = SQLiteStorage.get_max_step_for_run(self._project, name)
            self._last_step = -1 if last_step is None else last_step
            log.info(f'Trackio: trackio show --project "{self._project}"')
        return self._mirror

    def _name(self) -> str:
        """Return the name of the run in Trackio, which is kept in the run folder: settings and seeds may repeat."""
        file = self._run.files.trackio
        if not file.exists():
            file.write_text(f"{self._run.setting} seed={self._run.seed} {secrets.token_hex(3)}\n", encoding="utf-8")
        return file.read_text(encoding="utf-8").strip()


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Hide what Trackio prints: the console belongs to the progress line."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
