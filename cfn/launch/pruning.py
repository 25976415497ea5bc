"""Pruning of trials: a run whose objective falls behind that of the study's other runs ends early.

Each run reports its objective to the database of the study after every evaluation, and asks one of Optuna's pruners.
Hydra's sweeper for Optuna knows complete and failed trials only, so the database itself records a pruned one as such.
"""

import contextlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import RDBStorage
from optuna.trial import TrialState

from cfn.errors import UsageError
from cfn.launch import objective
from cfn.runs.folder import Run, as_typed
from cfn.runs.layout import SweepLayout
from cfn.runs.reading import read_summary
from cfn.tracking.base import Tracker
from cfn.training.signals import PrunedError
from cfn.types import Array

log = logging.getLogger(__name__)

PRUNED = "pruned"
"""State of a run that a study has ended."""
LOCK_SECONDS = 60
"""Seconds to wait while another process writes to the database."""


class StudyStorage(RDBStorage):  # type: ignore[misc]  # has no types
    """The database of a study.

    Args:
        files: Paths of the sweep's files.
    """

    def __init__(self, files: SweepLayout) -> None:
        super().__init__(f"sqlite:///{files.study}", engine_kwargs={"connect_args": {"timeout": LOCK_SECONDS}})
        self._path, self._pruned = files.study, set[int]()

    def __str__(self) -> str:
        return as_typed(self._path)

    def mark(self, trial: int, folder: Path) -> None:
        """Record a trial as pruned when it ends, if the study has ended its run.

        Args:
            trial: Identifier of the trial in the database.
            folder: Its run folder.
        """
        with contextlib.suppress(UsageError):  # the run failed before it began
            if read_summary(folder).get("state") == PRUNED:
                self._pruned.add(trial)

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """Set the state of a trial; a complete trial that was marked is pruned, with its last score."""
        state = TrialState.PRUNED if trial_id in self._pruned and state == TrialState.COMPLETE else state
        return bool(super().set_trial_state_values(trial_id, state, values))


class Pruning(Tracker):
    """Reports the objective of a run to its study after each evaluation, and raises `PrunedError` if it falls behind.

    A database that cannot be used does not stop the run: it then goes on unpruned.

    Args:
        run: Run of a trial.
        sweeper: Keys `hydra.sweeper.*`, with the study, the number of the trial, the pruner and the direction.
    """

    def __init__(self, run: Run, sweeper: Any) -> None:
        from hydra.utils import instantiate

        super().__init__(run)
        self._run, self._total = run, int(run.config["steps"])
        self._objective, self._direction = str(run.config["objective"]), sweeper.direction
        self._files, self._number = SweepLayout(Path(sweeper.study)), int(sweeper.trial)
        self._pruner: optuna.pruners.BasePruner = instantiate(sweeper.pruner)

    def evaluated(self, step: int, rooms: Mapping[int, Array]) -> None:
        """Report the objective; raise `PrunedError` if the study ends the run here."""
        if step >= self._total:
            return
        try:
            hopeless = self._is_hopeless()
        except Exception as error:  # the run is worth more than what its pruning would save
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            log.warning(f"The study cannot be asked whether to prune this run ({reason}): it continues.")
            return
        if hopeless:
            raise PrunedError(f"Pruned by the study {self._files.folder.name}")

    def _is_hopeless(self) -> bool:
        storage = StudyStorage(self._files)
        name = self._files.folder.name
        study = optuna.load_study(study_name=name, storage=storage, pruner=self._pruner)
        trial = storage.get_trial_id_from_study_id_trial_number(storage.get_study_id_from_name(name), self._number)
        reported = storage.get_trial(trial).intermediate_values
        for step, score in objective.course(self._run.folder, self._objective, self._direction).items():
            if step not in reported:  # more than one is missing in a trial that another one has begun
                storage.set_trial_intermediate_value(trial, step, score)
        try:
            return bool(self._pruner.prune(study, storage.get_trial(trial)))
        finally:
            storage.engine.dispose()
