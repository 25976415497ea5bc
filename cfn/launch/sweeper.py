"""Sweeps (`cfn train -m`): every combination of the values given, one run each.

Hydra's own sweeper stops before the first run if one of the runs does not compose, and its run folders have no common
time if runs are spread over processes. Here one invalid run does not abort the sweep, and every run knows the start of
the sweep and the swept keys, so that the seeds of one setting have folders side by side.
"""

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import JobStatus
from hydra.plugins import sweeper
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from cfn.config import CONF
from cfn.errors import UsageError
from cfn.launch.planning import Job, Plan, Planner
from cfn.launch.progress import continuable, watched, what_is_left
from cfn.launch.resuming import unfinished
from cfn.launch.threads import threads_per_run
from cfn.runs.folder import as_typed
from cfn.runs.layout import SWEEPS, SweepLayout
from cfn.runs.sweeps import TIME, SweepRecord, new_sweep


@runtime_checkable
class KeepsLogs(Protocol):
    """A launcher whose jobs write their own logs."""

    def log_to(self, folder: Path) -> None:
        """Write the logs to this folder."""


class Sweeper(sweeper.Sweeper):
    """Launches all runs of a sweep, keeps a record of it, and draws the experiment's figure.

    Args:
        max_batch_size: Number of runs per call of the launcher; None: all.
        params: Keys swept by an experiment, with their values.
        search: Values of `suite.search` that are swept, too: those of the agent and the bonus of each run (`all`), or
            only the bonus's scale (`scale`).
        resume: Set by `cfn resume`: `paths` of the sweeps and runs to continue, `changes` of their keys, and names to
            `trust`.
        error_file: Set for each run: file for the error of a run that cannot begin.
    """

    describe: ClassVar[Callable[[BaseException], str]] = str
    """Turns an error into a sentence. The command line sets it: Hydra constructs the sweeper itself."""

    def __init__(
        self,
        max_batch_size: int | None = None,
        params: dict[str, str] | None = None,
        search: Literal["none", "scale", "all"] = "none",
        resume: Mapping[str, Any] | None = None,
        error_file: str | None = None,
    ) -> None:
        del error_file  # the runs read it
        if max_batch_size is not None and (not isinstance(max_batch_size, int) or max_batch_size < 1):
            raise UsageError(
                f"hydra.sweeper.max_batch_size={max_batch_size}: should be at least 1, or null for no limit"
            )
        self._batch_size = max_batch_size
        self._params = params or {}
        self._search = search
        self._resume = resume

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Receive Hydra's context and make the launcher."""
        self._config, self._loader = config, hydra_context.config_loader
        self._launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )
        self._planner = Planner(config, self._loader, type(self).describe)

    def sweep(self, arguments: list[str]) -> Any:
        """Launch all runs; raise `UsageError` at the end if some failed."""
        if self._resume is not None:
            return self._continue()
        parser = OverridesParser.create(config_loader=self._loader)
        overrides = parser.parse_overrides([*(f"{k}={v}" for k, v in self._params.items()), *arguments])
        with new_sweep(Path(self._config.hydra.sweep.dir)) as folder:
            record, plans = self._plan(folder, overrides)
        jobs = []
        for run, plan in zip(record.runs, plans, strict=True):
            if plan.problem is None:
                jobs.append(Job(run))
            else:
                run.write_error(plan.problem)
        return self._launch(jobs, len(plans) - len(jobs), len(plans), [record])

    def _plan(self, folder: Path, overrides: list[Override]) -> tuple[SweepRecord, list[Plan]]:
        """Plan all runs and write the record of the sweep; raise `UsageError` if no run can start.

        Args:
            folder: Folder of the sweep.
            overrides: Overrides of the command and of its experiment.
        """
        swept = {o.key_or_group for o in overrides if o.is_sweep_override()}
        self._planner.name_run_folders(folder.name, {o.key_or_group for o in overrides} - swept)
        plans = self._planner.plan([run for one in combinations(overrides) for run in self._searched(one)])
        if all(plan.problem is not None for plan in plans):
            raise UsageError(f"all {len(plans)} runs of the sweep failed; the reasons are above")
        choices = self._config.hydra.runtime.choices
        runs = [(plan.folder, plan.overrides) for plan in plans]
        record = SweepRecord.create(folder, runs, self._planner.config_dir, choices.experiment)
        OmegaConf.save(self._config, record.files.record)
        return record, plans

    def _continue(self) -> Any:
        """Continue every run of the named sweeps and folders that is not finished, and start those never started."""
        assert self._resume is not None
        found = unfinished([Path(path) for path in self._resume["paths"]], self._resume["changes"])
        for sentence in found.report:
            print(sentence, flush=True)
        jobs = self._planner.startable(found.jobs, self._resume["trust"])
        return self._launch(jobs, len(found.jobs) - len(jobs), len(found.jobs), found.records)

    def _launch(self, jobs: Sequence[Job], failed: int, total: int, records: Sequence[SweepRecord]) -> Any:
        """Launch runs in batches, report failures, and draw the figure of each experiment.

        Args:
            jobs: Runs to launch.
            failed: Number of further runs that cannot start.
            total: Number of all runs.
            records: Sweeps that the runs belong to.
        """
        if isinstance(self._launcher, KeepsLogs):
            now = Path(self._config.hydra.sweep.dir, SWEEPS, datetime.now().strftime(TIME))
            self._launcher.log_to((records[0].files if records else SweepLayout(now.absolute())).jobs)
        threads = threads_per_run(self._config.hydra, len(jobs))
        size = self._batch_size or max(1, len(jobs))
        results = []
        paths = [Path(path) for path in self._resume["paths"]] if self._resume else [records[0].files.folder]
        with continuable(self._config, paths), watched(self._config, [job.run for job in jobs]):
            for start in range(0, len(jobs), size):
                batch = [job.overrides(threads) for job in jobs[start : start + size]]
                done = self._launcher.launch(batch, initial_job_idx=start)
                failed += sum(job.status == JobStatus.FAILED for job in done)
                results.append(done)
        for record in records:
            self._draw_figure(record)
        if any(job.run.state in ("stopped", "killed") for job in jobs):  # cancelled, killed, or out of disk space
            print(what_is_left(self._config, paths), flush=True)
        if failed:
            raise UsageError(f"{failed} of {total} runs of the sweep failed; the reasons are above")
        return results

    def _searched(self, job: list[str]) -> list[list[str]]:
        """Return one run per combination of the values that the run's suite lists for its agent and its bonus."""
        if self._search == "none":
            return [job]
        try:
            composed = self._loader.load_sweep_config(self._config, job)
        except Exception:  # the plan of the run has the reason
            return [job]
        searched = searched_values(composed, self._search)
        named = {override.lstrip("+").partition("=")[0] for override in job}
        bonus = composed.hydra.runtime.choices.bonus
        if bonus == "none":  # without a bonus, only values of the agent can be searched
            complete = bool(searched)
            hint = "choose another bonus (preset=paper searches the agent's values, if the suite lists any)"
        else:
            complete = "bonus.scale" in searched.keys() | named
            hint = "name them, as in bonus.scale=0.01,0.1"
        if not complete:
            raise UsageError(f"bonus={bonus} has no values to search in this suite: {hint}")
        options = [[f"{key}={value}" for value in values] for key, values in searched.items() if key not in named]
        return [[*job, *chosen] for chosen in itertools.product(*options)]

    def _draw_figure(self, record: SweepRecord) -> None:
        """Draw the experiment's figure, if it has one, next to the record of the sweep."""
        folders = [run.folder for run in record.runs if run.state == "finished"]
        from cfn.analysis.figures.paper import draw_experiment  # matplotlib is slow to import

        try:
            if drawn := draw_experiment(record.experiment, folders, record.files.figure, CONF):
                print(f"The experiment's figure: {as_typed(drawn.path)}", flush=True)
                if drawn.table:
                    print(f"\n{drawn.table}", end="", flush=True)
                for problem in drawn.problems:
                    print(f"cfn: {problem}", file=sys.stderr)
        except Exception as error:  # the runs are worth more than their figure
            print(f"cfn: the experiment's figure could not be drawn: {type(self).describe(error)}", file=sys.stderr)


def searched_values(composed: DictConfig, search: Literal["scale", "all"]) -> dict[str, Sequence[Any]]:
    """Return the values that a run's suite lists for its agent and its bonus, by config key.

    Args:
        composed: Config composed by Hydra, with Hydra's own part.
        search: `all`, or only the bonus's `scale`.
    """
    lists = composed.suite.get("search") or {}  # a user's own suite may have none
    groups = {group: lists.get(composed.hydra.runtime.choices[group]) or {} for group in ("agent", "bonus")}
    values = {f"{group}.{key}": values for group, keys in groups.items() for key, values in keys.items()}
    return {key: listed for key, listed in values.items() if search == "all" or key == "bonus.scale"}


def combinations(overrides: list[Override]) -> list[list[str]]:
    """Return the overrides of each run; if a key is given twice, the later values count."""
    values: dict[str, list[str]] = {}
    for override in overrides:
        key = override.get_key_element()
        if override.is_sweep_override():
            if not override.is_discrete_sweep():
                raise UsageError(f"{override.input_line}: only lists of values can be swept")
            runs = [f"{key}={value}" for value in override.sweep_string_iterator()]
            if not runs:
                raise UsageError(f"{override.input_line}: the list of values is empty: name at least one")
        else:
            runs = [str(override.input_line)]  # as in a single run, so that both have the same setting
        values[key.lstrip("+")] = runs
    return [list(job) for job in itertools.product(*values.values())]
