"""The launcher `hydra/launcher=joblib`: Hydra's own, but a signal stops its runs after a checkpoint.

joblib kills all its workers when the command or one run is interrupted. Here the command waits after the first signal:
the runs in progress finish their step, save and stop, and no further run begins. A second Ctrl-C kills the workers.
"""

import contextlib
import logging
import os
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn
from hydra.types import TaskFunction
from hydra_plugins.hydra_joblib_launcher.joblib_launcher import JoblibLauncher

from cfn.launch.threads import workers_of
from cfn.stop_signals import SIGNALS, ignore_signals
from cfn.training.signals import StoppedError, StopRequest

JOBLIB_LOGGER = "hydra_plugins.hydra_joblib_launcher._core"
"""Named here because its module imports joblib, which is slow: Hydra imports this module in every command."""
POLL_SECONDS = 0.5
"""Seconds between two looks of a worker at the file that requests a stop."""


class ParallelLauncher(JoblibLauncher):  # type: ignore[misc]  # has no types
    """Launches runs in parallel processes."""

    task_function: TaskFunction | None

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Launch the runs and wait for them; raise `StoppedError` if a signal stopped them."""
        task = self.task_function
        assert task is not None  # Hydra has called `setup`
        workers = min(workers_of(self.joblib.get("n_jobs"), len(os.sched_getaffinity(0))), len(job_overrides))
        print(f"Training {len(job_overrides)} runs, {workers} at a time; cfn runs --watch lists them.", flush=True)
        logging.getLogger(JOBLIB_LOGGER).setLevel(logging.WARNING)  # it prints the arguments of joblib
        with tempfile.TemporaryDirectory() as folder, StopFile(Path(folder) / "stop") as stop, _deferred_in_children():
            self.task_function = StoppableTask(task, stop.path)
            try:
                results: Sequence[JobReturn] = super().launch(job_overrides, initial_job_idx)
            finally:
                self.task_function = task
        if stop.signal is not None:
            raise stop.signal
        return results


class StopFile(StopRequest):
    """Creates a file at the first signal.

    Args:
        path: File to create.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def __call__(self, reason: BaseException) -> None:
        """Request that all runs stop."""
        super().__call__(reason)
        self.path.touch()

    def _announce(self, stopped: StoppedError) -> None:
        del stopped
        print("\nThe runs save and stop; press Ctrl-C again to stop them now.", flush=True)


class StoppableTask:
    """Function of a run that stops if a file appears.

    Args:
        task: Function that trains the run.
        stop: File that requests the stop.
    """

    def __init__(self, task: TaskFunction, stop: Path) -> None:
        self._task, self._stop, self._launcher = task, stop, os.getpid()

    def __call__(self, config: Any) -> Any:
        """Train a run, unless the file exists already."""
        if os.getpid() == self._launcher:  # a single worker: joblib starts no process
            return None if self._stop.exists() else self._task(config)
        ignore_signals()  # obeyed while the run trains only; a worker that a signal ends would end all others
        if self._stop.exists():
            return None
        with self._watched():
            try:
                return self._task(config)
            except StoppedError:  # joblib would kill the other workers before they have saved
                return None

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Signal this process while the file exists: again and again, because a run that is imported ignores it."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(POLL_SECONDS):
                if self._stop.exists():
                    os.kill(os.getpid(), signal.SIGTERM)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextlib.contextmanager
def _deferred_in_children() -> Iterator[None]:
    """Let processes that the main thread starts begin with blocked signals; this process still receives them.

    A terminal sends Ctrl-C to the workers, too, and one that still imports its libraries would be ended by it. The
    operating system delivers a signal to any thread that does not block it, and Python handles it in the main thread.
    """
    ended = threading.Event()
    receiver = threading.Thread(target=ended.wait, daemon=True)
    receiver.start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        ended.set()
        receiver.join()
