"""The sweeper `hydra/sweeper=optuna`: a study, in which earlier runs decide which values are tried next.

Optuna and Hydra's sweeper for it choose the values. This module gives every trial a planned run folder, keeps the study
in the folder of the sweep, and continues a study that was stopped: a trial that was running is continued, not repeated.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins import sweeper
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

from cfn.errors import UsageError
from cfn.launch import objective
from cfn.launch.planning import Job, Planner
from cfn.launch.progress import watched
from cfn.launch.sweeper import TIME, KeepsLogs, Sweeper
from cfn.launch.threads import threads_per_run
from cfn.runs.folder import as_typed
from cfn.runs.layout import SWEEPS, SweepLayout
from cfn.runs.sweeps import PlannedRun, SweepRecord

INSTALL = "hydra/sweeper=optuna needs further packages: pip install 'cfn-rl[optuna]'"


def replace_option() -> None:
    """Remove the option `optuna` that Hydra's sweeper registers: conf/hydra/sweeper/optuna.yaml has the same name.

    Hydra refuses a YAML file that shares its name with a registered option.
    """
    Plugins.instance()  # loads the plugins, which register their options
    options = ConfigStore.instance().repo.get("hydra", {}).get("sweeper", {})
    options.pop("optuna.yaml", None)


class StudySweeper(sweeper.Sweeper):
    """Runs a study.

    Args:
        sampler: Optuna's sampler, which Hydra has constructed.
        n_trials: Number of runs of the study.
        n_jobs: Number of runs at the same time.
        direction: Whether to `maximize` or to `minimize` the objective.
        max_failure_rate: Share of failed runs in a batch that stops the study.
        params: Keys to tune, with their ranges, in Hydra's syntax of sweeps.
        study: Folder of a study to continue.
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
        study: str | None = None,
        error_file: str | None = None,
    ) -> None:
        del error_file  # the runs read it
        self._sampler, self._direction, self._params = sampler, direction, params
        self._n_trials, self._n_jobs, self._max_failure_rate = n_trials, n_jobs, max_failure_rate
        self._study = study

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
        named = [f"{key}={values}" for key, values in (self._params or {}).items()]
        ranges, fixed, _ = create_params_from_overrides([*named, *arguments])
        if not ranges:
            example = "'bonus.scale=tag(log, interval(1e-3, 1e-1))'"
            raise UsageError(f"this study tunes no key: name a range, such as {example}")
        self._record = self._open_record(set(fixed))
        left = self._n_trials if self._study is None else self._n_trials - self._restore()
        if left > 0:
            impl: Any = OptunaSweeperImpl(
                sampler=self._sampler,
                direction=self._direction,
                storage=self._storage,
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
        self._report()

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
        launched = [job.overrides(threads) for job in jobs]
        done: dict[PlannedRun, JobReturn] = {}
        if jobs:
            with watched(self._config.hydra, [job.run for job in jobs]):
                results = self._launcher.launch(launched, initial_job_idx=initial_job_idx)
            done = dict(zip((job.run for job in jobs), results, strict=True))
        return [done.get(runs[overrides]) or _failed(overrides, problems[overrides]) for overrides in batch]

    def _open_record(self, fixed: set[str]) -> SweepRecord:
        """Return the record of the study: a new one, or that of the study to continue."""
        if self._study is not None:
            record = SweepRecord.read(Path(self._study))
            self._planner.name_run_folders(record.files.folder.name, fixed)
            return record
        time = datetime.now().strftime(TIME)
        self._planner.name_run_folders(time, fixed)
        folder = Path(self._config.hydra.sweep.dir, SWEEPS, time)
        record = SweepRecord.create(folder, [], self._planner.config_dir, "none")
        OmegaConf.save(self._config, record.files.record)
        return record

    def _restore(self) -> int:
        """Queue the trials that were running when the study stopped; return the number of trials that have ended."""
        import optuna

        study = optuna.load_study(study_name=self._name, storage=self._storage)
        trials = study.get_trials(deepcopy=False)
        for trial in trials:
            if trial.state == optuna.trial.TrialState.RUNNING:
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
                study.enqueue_trial(trial.params)
        return sum(trial.state.is_finished() for trial in trials)

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


def _unused(config: Any) -> None:
    """Stand for the task: Hydra's sweeper makes a launcher with it, which is not used."""


def _failed(overrides: Sequence[str], reason: str) -> JobReturn:
    return JobReturn(overrides=overrides, status=JobStatus.FAILED, _return_value=UsageError(reason))
