"""Pictures of a run while it trains: drawn from its files, and passed on to other trackers.

Training does not know this tracker: the command adds it. So training imports neither matplotlib nor `analysis`.
"""

import gc
import io
import logging
from collections.abc import Mapping

from cfn.errors import one_line
from cfn.runs.atomic import write_atomically
from cfn.runs.folder import Run
from cfn.runs.reading import read_metrics
from cfn.runs.record import SPEED
from cfn.tracking.base import Tracker
from cfn.types import Array

log = logging.getLogger(__name__)

MAX_DRAWINGS = 10
"""Maximum number of times that pictures are drawn in a run: drawing takes longer than a short evaluation."""


class Pictures(Tracker):
    """Draws the pictures of a run, at most 10 times and at its end. An error in drawing does not stop the run.

    With the key `pictures=false`, nothing is drawn; images of rooms, which only the run has, are still saved.

    Args:
        run: Run to draw.
        mirror: Tracker that receives pictures and count tables.
    """

    def __init__(self, run: Run, mirror: Tracker) -> None:
        self._run, self._mirror, self._wanted = run, mirror, bool(run.config.get("pictures", True))
        evaluations = read_metrics(run.folder, [SPEED]).get(SPEED)  # of a resumed run
        last = int(evaluations.steps[-1]) if evaluations else 0
        self._step, self._drawings, self._drawn_step = last, self._drawings_by(last), last

    def tick(self, step: int) -> None:
        """Remember the current step."""
        self._step = step

    def evaluated(self, step: int, rooms: Mapping[int, Array]) -> None:
        """Save images of new rooms, and draw if the run has completed another tenth."""
        self._save_rooms(rooms)
        if (drawings := self._drawings_by(step)) > self._drawings:
            self._drawings = drawings
            self._draw(step)

    def finish(self, failed: bool = False) -> None:
        """Draw the last state of a run that was stopped between two drawings."""
        if not failed and self._step > self._drawn_step:
            self._draw(self._step)

    def _drawings_by(self, step: int) -> int:
        return step * MAX_DRAWINGS // int(self._run.config["steps"])

    def _draw(self, step: int) -> None:
        self._drawn_step = step
        if self._wanted:
            self._draw_pictures(step)
        table = self._run.files.count_table(step)
        if table.exists():
            self._mirror.log_counts(step, table)

    def _draw_pictures(self, step: int) -> None:
        from cfn.analysis.figures.single_run import draw_run  # imports matplotlib, which `pictures=false` saves

        try:
            self._mirror.log_pictures(step, draw_run(self._run.folder, f"{self._run.setting}, seed {self._run.seed}"))
        except Exception as error:  # the run is worth more than its pictures
            log.warning(f"The pictures of step {step:,} could not be drawn ({one_line(error)}).")
            log.debug("traceback:", exc_info=error)
        gc.collect()  # figures form reference cycles: without this, some 30 MiB of them accumulate over a run

    def _save_rooms(self, rooms: Mapping[int, Array]) -> None:
        for number, image in rooms.items():
            path = self._run.files.room(number)
            if not path.exists():
                from matplotlib.image import imsave  # slow to import

                path.parent.mkdir(exist_ok=True)
                file = io.BytesIO()
                imsave(file, image, cmap="gray", vmin=0, vmax=255, format="png")
                write_atomically(path, file.getbuffer())
