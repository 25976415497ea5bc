"""Sweeps (`cfn train -m`): every combination of the values given, one run each.

Hydra's own sweeper stops before the first run if one of the runs does not compose, and its run folders have no common
time if runs are spread over processes. Here one invalid run does not abort the sweep, and every run knows the start of
the sweep and the swept keys, so that the seeds of one setting have folders side by side.
"""

import itertools
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins import sweeper
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from cfn.config import CONF, check
from cfn.errors import UsageError
from cfn.launch.composed import AUTO, without_hydra
from cfn.runs.layout import SWEEPS


class Sweeper(sweeper.Sweeper):
    """Launches all runs of a sweep, keeps a record of it, and draws the experiment's figure.

    Args:
        max_batch_size: Number of runs per call of the launcher; None: all.
        params: Keys swept by an experiment, with their values.
        search: Values of `suite.search` that are swept, too: those of the agent and the bonus of each run (`all`), or
            only the bonus's scale (`scale`).
    """

    describe: ClassVar[Callable[[BaseException], str]] = str
    """Turns an error into a sentence. The command line sets it: Hydra constructs the sweeper itself."""

    def __init__(
        self,
        max_batch_size: int | None = None,
        params: dict[str, str] | None = None,
        search: Literal["none", "scale", "all"] = "none",
    ) -> None:
        self._batch_size = max_batch_size
        self._params = params or {}
        self._search = search

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Receive Hydra's context and make the launcher."""
        self._config, self._loader = config, hydra_context.config_loader
        self._launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Launch all runs; raise `UsageError` at the end if some failed."""
        parser = OverridesParser.create(config_loader=self._loader)
        overrides = parser.parse_overrides([*(f"{k}={v}" for k, v in self._params.items()), *arguments])
        time = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        swept = {o.key_or_group for o in overrides if o.is_sweep_override()}
        self._name_run_folders(time, {o.key_or_group for o in overrides} - swept)
        jobs = [job for one in combinations(overrides) for job in self._searched(one)]
        valid = self._valid(jobs)
        failed = len(jobs) - len(valid)
        if not valid:
            raise UsageError(f"all {failed} runs of the sweep failed; the reasons are above")
        record = Path(self._config.hydra.sweep.dir) / SWEEPS / f"{time}.yaml"
        record.parent.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self._config, record)
        size = self._batch_size or len(valid)
        results = []
        for start in range(0, len(valid), size):
            done = self._launcher.launch(valid[start : start + size], initial_job_idx=start)
            failed += sum(job.status == JobStatus.FAILED for job in done)
            results.append(done)
        self._draw_figure(record.with_suffix(".png"), [job for done in results for job in done])
        if failed:
            raise UsageError(f"{failed} of {len(jobs)} runs of the sweep failed; the reasons are above")
        return results

    def _searched(self, job: list[str]) -> list[list[str]]:
        """Return one run per combination of the values that the run's suite lists for its agent and its bonus."""
        if self._search == "none":
            return [job]
        try:
            composed = self._loader.load_sweep_config(self._config, job)
        except Exception:  # `_valid` says why
            return [job]
        searched = searched_values(composed, self._search)
        named = {override.lstrip("+").partition("=")[0] for override in job}
        if "bonus.scale" not in searched.keys() | named:
            bonus = composed.hydra.runtime.choices.bonus
            raise UsageError(
                f"bonus={bonus} has no values to search in this suite: name them, as in bonus.scale=0.01,0.1"
            )
        options = [[f"{key}={value}" for value in values] for key, values in searched.items() if key not in named]
        return [[*job, *chosen] for chosen in itertools.product(*options)]

    def _name_run_folders(self, time: str, constant: set[str]) -> None:
        """Add the start of the sweep and the keys that are not swept to the config of every run."""
        hydra = self._config.hydra.overrides.hydra
        if not any(override.startswith("hydra.sweep.subdir=") for override in hydra):
            hydra.append(f"hydra.sweep.subdir=${{cfn_run_folder:{time}}}")
        keys = ",".join(f"'{key}'" for key in sorted(constant))
        hydra.append(f"hydra.job.config.override_dirname.exclude_keys=[{keys}]")

    def _draw_figure(self, out: Path, jobs: Sequence[JobReturn]) -> None:
        """Draw the experiment's figure, if it has one, next to the record of the sweep."""
        finished = [job.hydra_cfg for job in jobs if job.status == JobStatus.COMPLETED and job.hydra_cfg is not None]
        folders = [Path(config.hydra.runtime.output_dir) for config in finished]
        from cfn.analysis.figures.paper import draw_experiment  # matplotlib is slow to import

        try:
            if drawn := draw_experiment(self._config.hydra.runtime.choices.experiment, folders, out, CONF):
                print(f"The experiment's figure: {drawn.path}", flush=True)
                if drawn.table:
                    print(f"\n{drawn.table}", end="", flush=True)
                for problem in drawn.problems:
                    print(f"cfn: {problem}", file=sys.stderr)
        except Exception as error:  # the runs are worth more than their figure
            print(f"cfn: the experiment's figure could not be drawn: {type(self).describe(error)}", file=sys.stderr)

    def _valid(self, jobs: list[list[str]]) -> list[list[str]]:
        """Return the runs that can start, and report the others; raise `UsageError` if all fail for one reason."""
        problems = [self._problem(job) for job in jobs]
        if None not in problems and len(set(problems)) == 1:
            raise UsageError(str(problems[0]))
        for job, problem in zip(jobs, problems, strict=True):
            if problem is not None:
                report_failure(job, problem)
        return [job for job, problem in zip(jobs, problems, strict=True) if problem is None]

    def _problem(self, overrides: Sequence[str]) -> str | None:
        """Return why a run cannot start; None if its config is valid, or if only the run itself can tell."""
        try:
            composed = self._loader.load_sweep_config(self._config, list(overrides))
        except Exception as error:
            return type(self).describe(error)
        choices = composed.hydra.runtime.choices
        if choices.agent == AUTO:  # on the machine that launches runs, the environment may not even exist
            return None
        try:
            check(without_hydra(composed), choices)
        except UsageError as error:
            return str(error)
        except Exception:  # an interpolation that has a value only while the run exists
            return None
        return None


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
                raise UsageError(f"{override.input_line}: this sweeps no values: name at least one")
        else:
            runs = [str(override.input_line)]  # as in a single run, so that both have the same setting
        values[key.lstrip("+")] = runs
    return [list(job) for job in itertools.product(*values.values())]


def report_failure(overrides: Sequence[str], reason: str) -> None:
    """Print that a run of a sweep failed."""
    print(f"cfn: the run {' '.join(overrides)} failed: {reason}", file=sys.stderr, flush=True)
