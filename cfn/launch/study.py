"""The sweeper `hydra/sweeper=optuna`: a study, in which the scores of earlier runs decide the values of later ones.

Optuna and Hydra's sweeper for it choose the values. This module gives every trial a planned run folder, keeps the study
in the folder of the sweep, and continues a study that was stopped: a trial that was running is continued, not repeated.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins import sweeper
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

from cfn.errors import UsageError
from cfn.launch import objective
from cfn.launch.planning import Job, Planner, quoted
from cfn.launch.progress import continuable, watched
from cfn.launch.queue import queued_runs
from cfn.launch.sweeper import KeepsLogs, Sweeper
from cfn.launch.threads import threads_per_run
from cfn.runs import lock
from cfn.runs.folder import as_typed
from cfn.runs.layout import SweepLayout
from cfn.runs.sweeps import REPEATED, PlannedRun, SweepRecord, new_sweep

INSTALL = "hydra/sweeper=optuna needs further packages: pip install 'cfn-rl[optuna]'"


class StudySweeper(sweeper.Sweeper):
    """Runs a study.

    Args:
        sampler: Optuna's sampler, which Hydra has constructed.
        n_trials: Number of runs of the study.
        n_jobs: Number of runs at the same time.
        direction: Whether to `maximize` or to `minimize` the objective.
        max_failure_rate: Share of failed runs in a batch that stops the study.
        params: Keys to tune, with their ranges, in Hydra's syntax of sweeps.
        pruner: Optuna's pruner, which Hydra has constructed: the runs construct theirs; None: no run is pruned.
        study: Folder of a study to continue.
        trial: Set for each run: number of its trial.
        error_file: Set for each run: file for the error of a run that cannot begin.
    """

    def __init__(
        self,
        n_trials: int,
        n_jobs: int,
        direction: objective.Direction,
        max_failure_rate: float,
        sampler: Any = None,
        params: Mapping[str, str] | None = None,
        pruner: Any = None,
        study: str | None = None,
        trial: int | None = None,
        error_file: str | None = None,
    ) -> None:
        del trial, error_file  # the runs read them
        self._sampler, self._direction, self._params = sampler, direction, params
        self._n_trials, self._n_jobs, self._max_failure_rate = n_trials, n_jobs, max_failure_rate
        self._prunes, self._study = pruner is not None, study

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Receive Hydra's context and make the launcher."""
        self._config, self._context = config, hydra_context
        self._launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )
        self._planner = Planner(config, hydra_context.config_loader, Sweeper.describe)

    def sweep(self, arguments: list[str]) -> None:
        """Run the trials that are left, and report the study."""
        try:
            from hydra_plugins.hydra_optuna_sweeper._impl import OptunaSweeperImpl, create_params_from_overrides
        except ImportError as error:
            raise UsageError(INSTALL) from error
        objective.parse(str(self._config.objective))
        if self._prunes and not self._config.eval.every:
            raise UsageError("hydra/sweeper/pruner needs evaluations: set eval.every=N")
        named = [f"{key}={values}" for key, values in (self._params or {}).items()]
        ranges, fixed, _ = create_params_from_overrides([*named, *arguments])
        if not ranges:
            example = "'bonus.scale=tag(log, interval(1e-3, 1e-1))'"
            raise UsageError(f"this study tunes no key: name a range, such as {example}")
        self._check(ranges)
        self._record = self._open_record(set(fixed))
        with lock.hold(self._files.lock, as_typed(self._files.folder)):  # a second command would repeat trials
            with continuable(self._config, [self._files.folder]):
                self._run_trials(OptunaSweeperImpl, arguments)
            self._report()

    def _check(self, ranges: Mapping[str, Any]) -> None:
        """Raise `UsageError` for keys of the study that Optuna would refuse with an error of its own.

        Args:
            ranges: Optuna's distribution of each tuned key.
        """
        import optuna

        if self._direction not in (directions := get_args(objective.Direction)):
            raise UsageError(f"hydra.sweeper.direction={self._direction}: choose {' or '.join(directions)}")
        for key, value in (("n_trials", self._n_trials), ("n_jobs", self._n_jobs)):
            if type(value) is not int or value < 1:
                raise UsageError(f"hydra.sweeper.{key}={value}: should be a whole number of at least 1")
        if getattr(self._sampler, "func", None) is optuna.samplers.GridSampler:  # made when the values are known
            for key, values in ranges.items():
                if isinstance(values, optuna.distributions.FloatDistribution) and values.step is None:
                    hint = f"write {key}=choice(...), or choose another sampler"
                    raise UsageError(f"{key}: hydra/sweeper/sampler=grid needs a list of values: {hint}")
        if isinstance(self._sampler, optuna.samplers.CmaEsSampler) and find_spec("cmaes") is None:
            raise UsageError("hydra/sweeper/sampler=cmaes needs a further package: pip install cmaes")

    def _run_trials(self, make_sweeper: Any, arguments: list[str]) -> None:
        """Run the trials that are left.

        Args:
            make_sweeper: Hydra's sweeper for Optuna.
            arguments: Overrides of the command line.
        """
        import optuna

        from cfn.launch.pruning import StudyStorage  # imports Optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)  # Hydra's sweeper says the same
        left = self._n_trials if self._study is None else self._n_trials - self._restore()
        if left <= 0:
            return
        self._database = StudyStorage(self._files)
        impl: Any = make_sweeper(
            sampler=self._sampler,
            direction=self._direction,
            storage=self._database,
            study_name=self._name,
            n_trials=left,
            n_jobs=self._n_jobs,
            max_failure_rate=self._max_failure_rate,
            custom_search_space=None,
            params=self._params,
        )
        impl.setup(hydra_context=self._context, task_function=_unused, config=self._config_for_results())
        impl.launcher = self  # plans each run, then asks the real launcher
        try:
            impl.sweep(arguments)
        except ValueError as error:
            if "No trials are completed" not in str(error):
                raise
            raise UsageError(f"all {left} runs of the study failed; the reasons are above") from error

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        """Launch a batch of trials; a trial that an interrupted command began is continued in its folder."""
        known = {run.overrides: run for run in self._record.runs}
        batch = [tuple(overrides) for overrides in job_overrides]
        plans = self._planner.plan([list(overrides) for overrides in batch if overrides not in known])
        self._record = self._record.extended([(plan.folder, plan.overrides) for plan in plans])
        runs = {run.overrides: run for run in self._record.runs}
        problems = {tuple(plan.overrides): plan.problem for plan in plans if plan.problem is not None}
        jobs = [Job(runs[overrides]) for overrides in dict.fromkeys(batch) if overrides not in problems]
        if isinstance(self._launcher, KeepsLogs):
            self._launcher.log_to(self._record.files.jobs)
        threads = threads_per_run(self._config.hydra, len(jobs))
        trials = list(zip(batch, self._running_trials(), strict=True))
        launched = [[*job.overrides(threads), *self._names_trial(dict(trials)[job.run.overrides])] for job in jobs]
        done: dict[PlannedRun, JobReturn] = {}
        if jobs:
            with watched(self._config, [job.run for job in jobs]):
                results = self._launcher.launch(launched, initial_job_idx=initial_job_idx)
            done = dict(zip((job.run for job in jobs), results, strict=True))
            refuse_missing_metric(results)
            for overrides, trial in trials:
                self._database.mark(trial._trial_id, runs[overrides].folder)
        return [done.get(runs[overrides]) or _failed(overrides, problems[overrides]) for overrides in batch]

    def _running_trials(self) -> list[Any]:
        """Return the trials of the batch, in its order: no others run, because the study is locked."""
        import optuna

        study = optuna.load_study(study_name=self._name, storage=self._database)
        return list(study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)))

    def _names_trial(self, trial: Any) -> list[str]:
        """Return the overrides from which a run that may be pruned knows its trial."""
        if not self._prunes:
            return []
        return [f"hydra.sweeper.study={quoted(self._files.folder)}", f"hydra.sweeper.trial={trial.number}"]

    def _open_record(self, fixed: set[str]) -> SweepRecord:
        """Return the record of the study: a new one, or that of the study to continue."""
        if self._study is not None:
            record = SweepRecord.read(Path(self._study))
            self._planner.name_run_folders(record.files.folder.name, fixed)
            return record
        with new_sweep(Path(self._config.hydra.sweep.dir)) as folder:
            self._planner.name_run_folders(folder.name, fixed)
            record = SweepRecord.create(folder, [], self._planner.config_dir, "none")
        OmegaConf.save(self._config, record.files.record)
        return record

    def _restore(self) -> int:
        """Queue the trials that were running when the study stopped; return the number of trials that have ended."""
        import optuna

        queued = queued_runs(self._files.outputs) & {run.folder for run in self._record.runs}
        if queued:
            hint = "resume the study when they have ended, or cancel them with scancel"
            raise UsageError(f"{len(queued)} of its runs are still in Slurm's queue: {hint}")
        study = optuna.load_study(study_name=self._name, storage=self._storage)
        trials = study.get_trials(deepcopy=False)
        for trial in trials:
            if trial.state == optuna.trial.TrialState.RUNNING:
                study._storage.set_trial_user_attr(trial._trial_id, REPEATED, True)
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
                study.enqueue_trial(trial.params)
        return sum(trial.state.is_finished() and REPEATED not in trial.user_attrs for trial in trials)

    def _report(self) -> None:
        """Print the result of the study, and write it with its pictures into the folder of the sweep."""
        from cfn.analysis.figures.study import report  # matplotlib is slow to import

        text, pictures = report(self._name, self._storage, self._record.files)
        print(f"\n{text}", flush=True)
        print(f"The study: {', '.join(as_typed(picture) for picture in pictures)}", flush=True)

    @property
    def _files(self) -> SweepLayout:
        return self._record.files

    @property
    def _name(self) -> str:
        return self._files.folder.name

    @property
    def _storage(self) -> str:
        return f"sqlite:///{self._files.study}"

    def _config_for_results(self) -> DictConfig:
        """Return the config with the folder of the sweep in the place where Hydra's sweeper writes its results."""
        config = self._config.copy()
        with open_dict(config):
            config.hydra.sweep.dir = str(self._files.folder)
        return config


def refuse_missing_metric(results: Sequence[JobReturn]) -> None:
    """Raise `UsageError` if no run of a batch has the metric of the objective: those of later batches would not either.

    Args:
        results: Results of the runs.
    """
    errors = [result._return_value for result in results if result.status == JobStatus.FAILED]
    missing = [error for error in errors if isinstance(error, objective.MissingMetricError)]
    if missing and len(missing) == len(results):
        hint = "begin a new study with a metric that the metrics file in its folder has"
        raise UsageError(f"{missing[0]}; {hint}")


def _unused(config: Any) -> None:
    """Stand for the task: Hydra's sweeper makes a launcher with it, which is not used."""


def _failed(overrides: Sequence[str], reason: str) -> JobReturn:
    return JobReturn(overrides=overrides, status=JobStatus.FAILED, _return_value=UsageError(reason))
