"""Sweeps (`-m`): Hydra's own, but a run that cannot be does not keep the others from being.

Hydra's sweeper gives up before the first run if any of them does not compose, and gives its folders no common time
when runs are spread over processes. This one reports such a run and goes on, and tells each run when the sweep began
and which keys are swept, so that seeds of one setting sit side by side.
"""

import itertools
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins import sweeper
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from cfn.config import CONF
from cfn.errors import UsageError


class Sweeper(sweeper.Sweeper):
    """Every combination of the values given, one run each.

    Args:
        max_batch_size: How many runs are handed to the launcher at once; None: all.
        params: What an experiment sweeps.
    """

    tell: Callable[[BaseException], str] = str
    """Puts an error into a sentence."""

    def __init__(self, max_batch_size: int | None = None, params: dict[str, str] | None = None) -> None:
        self._batch = max_batch_size
        self._params = params or {}

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what Hydra hands over."""
        self._config, self._loader = config, hydra_context.config_loader
        self._launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Run them all, and fail in the end if one of them did."""
        parser = OverridesParser.create(config_loader=self._loader)
        overrides = parser.parse_overrides([*(f"{k}={v}" for k, v in self._params.items()), *arguments])
        time = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        swept = {o.get_key_element() for o in overrides if o.is_sweep_override()}
        self._announce(time, {o.get_key_element() for o in overrides} - swept)
        record = Path(self._config.hydra.sweep.dir) / "sweeps" / f"{time}.yaml"
        record.parent.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self._config, record)
        jobs = _combinations(overrides)
        composable = [job for job in jobs if self._composes(job)]
        failed = len(jobs) - len(composable)
        size = self._batch or max(len(composable), 1)
        results = []
        for start in range(0, len(composable), size):
            done = self._launcher.launch(composable[start : start + size], initial_job_idx=start)
            failed += sum(job.status == JobStatus.FAILED for job in done)
            results.append(done)
        self._draw(record.with_suffix(".png"), [job for done in results for job in done])
        if failed:
            raise UsageError(f"{failed} of {len(jobs)} runs of the sweep failed; each said why")
        return results

    def _announce(self, time: str, constant: set[str]) -> None:
        """Put into every run's config when the sweep began, and which keys are not swept."""
        hydra = self._config.hydra.overrides.hydra
        if not any(override.startswith("hydra.sweep.subdir=") for override in hydra):
            hydra.append(f"hydra.sweep.subdir=${{cfn_run_folder:{time}}}")
        keys = ",".join(f"'{key}'" for key in sorted(constant))
        hydra.append(f"hydra.job.config.override_dirname.exclude_keys=[{keys}]")

    def _draw(self, out: Path, jobs: Sequence[JobReturn]) -> None:
        """Draw the experiment's figure, if it has one, beside the record of the sweep."""
        finished = [job.hydra_cfg for job in jobs if job.status == JobStatus.COMPLETED and job.hydra_cfg is not None]
        folders = [Path(config.hydra.runtime.output_dir) for config in finished]
        from cfn.analysis.figures import draw_experiment  # matplotlib is slow to import, and most sweeps need none

        try:
            if drawn := draw_experiment(self._config.hydra.runtime.choices.experiment, folders, out, CONF):
                print(f"The experiment's figure: {drawn[0]}", flush=True)
                for problem in drawn[1]:
                    print(f"cfn: {problem}", file=sys.stderr)
        except Exception as error:  # the runs are done, whatever becomes of their figure
            print(f"cfn: the experiment's figure could not be drawn: {type(self).tell(error)}", file=sys.stderr)

    def _composes(self, overrides: Sequence[str]) -> bool:
        try:
            self._loader.load_sweep_config(self._config, list(overrides))
        except Exception as error:
            report(overrides, type(self).tell(error))
            return False
        return True


def _combinations(overrides: list[Override]) -> list[list[str]]:
    """The overrides of each run; of a key given twice, the later values count."""
    values: dict[str, list[str]] = {}
    for override in overrides:
        key = override.get_key_element()
        if override.is_sweep_override():
            if not override.is_discrete_sweep():
                raise UsageError(f"{override.input_line}: only lists of values can be swept")
            values[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
        else:
            values[key] = [f"{key}={override.get_value_element_as_str()}"]
    return [list(job) for job in itertools.product(*values.values())]


def report(overrides: Sequence[str], sentence: str) -> None:
    """Say that a run of a sweep failed."""
    print(f"cfn: the run {' '.join(overrides)} failed: {sentence}", file=sys.stderr, flush=True)


# It takes the place of Hydra's own: for plugins under a name of their own, Hydra looks in packages of theirs alone.
Plugins.instance().class_name_to_class["hydra._internal.core_plugins.basic_sweeper.BasicSweeper"] = Sweeper
