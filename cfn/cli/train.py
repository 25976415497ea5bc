"""`cfn train`: Hydra composes the config and calls `job` once, or once per run of a sweep."""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from cfn import naming
from cfn.cli.arguments import parse_hydra
from cfn.cli.messages import describe
from cfn.config import CONF, OFFERED, check, refuse_untrusted
from cfn.errors import AlreadyDoneError, UsageError
from cfn.launch import objective
from cfn.launch.composed import run_folder, with_agent
from cfn.launch.parts import choosing_parts
from cfn.launch.planning import report_failure
from cfn.launch.plugin_options import replace_options
from cfn.launch.sweeper import Sweeper
from cfn.launch.threads import LAUNCHER
from cfn.runs.folder import Run, as_typed, remove_if_empty, reset_peak_memory
from cfn.runs.layout import Layout
from cfn.runs.reading import read_config, read_summary
from cfn.runs.sweeps import PlannedRun
from cfn.training.signals import PrunedError

if TYPE_CHECKING:
    from cfn.training.loop import ExtraTracker

log = logging.getLogger(__name__)

Sweeper.describe = staticmethod(describe)


def run(arguments: list[str]) -> None:
    """Run `cfn train`."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises errors instead of printing them
    if any(argument.startswith("hydra/launcher=") for argument in arguments):
        # Parallel runs share the cores: idle threads of PyTorch must not spin on a core that another run could use. A
        # single run is faster if they do (50-60 against 38-40 small coin-flip updates per second on two cores).
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    replace_options()
    OmegaConf.register_new_resolver("cfn_run_folder", run_folder, replace=True)
    options, arguments = parse_hydra(arguments)
    folders = [CONF, *([Path(options.config_dir)] if options.config_dir else [])]
    options.overrides, arguments = (choosing_parts(words, folders) for words in (options.overrides, arguments))
    if options.help:
        from cfn.cli.help import show  # reads the docstrings of classes that import PyTorch

        show(options.overrides, options.config_dir)
        return
    sys.argv = ["cfn", *arguments]
    failures: list[Exception] = []

    @hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
    def job(composed: DictConfig) -> float | None:
        if HydraConfig.get().mode != RunMode.RUN:
            return run_of_sweep(composed)
        try:
            train_one(composed)
        except Exception as error:
            failures.append(error)  # raised here, Hydra would print a line before ours
        return None

    job()
    if failures:
        raise failures[0]


def refuse_launcher(choices: Mapping[str, Any]) -> None:
    """Raise `UsageError` if a command without `-m` names a launcher or sweeper, which Hydra would not use.

    Args:
        choices: Chosen option of each group.
    """
    for group, default in ((LAUNCHER, "basic"), ("hydra/sweeper", "cfn")):
        if (chosen := choices.get(group)) not in (None, default):
            raise UsageError(f"{group}={chosen} is for sweeps only: add -m, also for a single run")


def run_of_sweep(composed: DictConfig) -> float | None:
    """Train one run of a sweep, or continue it; a failure is reported and recorded, and the sweep continues.

    Returns:
        The objective of a run that belongs to a study.
    """
    context = HydraConfig.get()
    overrides, error_file = list(context.overrides.task), context.sweeper.get("error_file")
    run = PlannedRun(Path(context.runtime.output_dir), tuple(overrides), error_file and Path(error_file))
    try:
        run.write_error(None)
        with contextlib.suppress(PrunedError), quiet_if_parallel(context):
            train_one(composed)  # the objective of a pruned run is that of its evaluations so far
        direction = context.sweeper.get("direction")
        if direction is None:
            return None
        # The overrides of a run that is continued are in its folder: `composed` has the default objective.
        return objective.value(run.folder, str(read_config(run.folder)["objective"]), direction)
    except Exception as error:
        sentence = describe(error)
        if isinstance(error, AlreadyDoneError) and context.sweeper.get("direction") is None:
            log.info(f"{error.fact}: it is left alone.")  # a study needs the score of the run
            return None
        with contextlib.suppress(OSError):  # a full disk may be the error
            if not run.started:
                run.write_error(sentence)
        report_failure(overrides, sentence, run.folder)
        raise


@contextlib.contextmanager
def quiet_if_parallel(context: Any) -> Iterator[None]:
    """Keep a run that shares the terminal with others from writing there: the sweep shows the progress of all."""
    if context.runtime.choices.get(LAUNCHER) != "joblib":
        yield
        return
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def train_one(composed: DictConfig) -> None:
    """Train one run from its composed config, or continue the run that an earlier start of the same job began."""
    reset_peak_memory()
    context = HydraConfig.get()
    folder = Path(context.runtime.output_dir)
    if may_continue(context) and Layout(folder).summary.exists():
        continue_run(folder, composed, context)
        return
    overrides = list(context.overrides.task)
    reserved, closing = may_continue(context), contextlib.ExitStack()
    try:
        if context.mode == RunMode.RUN:
            refuse_launcher(context.runtime.choices)
        if (asked := context.sweeper.get("resume")) is not None:  # the config comes from the record of a sweep
            refuse_untrusted(composed, asked.trust)
        composed, choices = with_agent(composed, context.runtime.choices)
        config = check(composed, choices)
        run = Run(
            folder=folder,
            env=naming.environment(config.env.name, config.env.keys),
            agent=config.agent.name,
            bonus=config.bonus.name,
            seed=config.seed,
            setting=naming.setting(choices, config.env.keys, overrides),
            config=OmegaConf.to_container(composed, resolve=True),  # type: ignore[arg-type]
        )
        from cfn.training.loop import Training  # PyTorch is slow to import, and help and completion do not need it

        training = closing.enter_context(contextlib.closing(Training(config)))
        hydra_config: Any = OmegaConf.to_container(OmegaConf.create({"hydra": context}), enum_to_str=True)
        hydra_config["hydra"]["runtime"]["choices"] = choices
        if not reserved:
            run.claim(hydra_config, overrides)
    except BaseException:  # also Ctrl-C
        closing.close()
        remove_if_empty(folder, Path(str(composed.outputs)).absolute())
        raise
    with closing, run.lock():
        # Two commands may resume the same sweep at the same time: only under the lock is it known who began the run.
        begun_elsewhere = reserved and run.files.summary.exists()
        if not begun_elsewhere:
            if reserved:
                run.claim(hydra_config, overrides, reserved=True)
            training.run(run, further_tracker(context))
    if begun_elsewhere:
        continue_run(folder, composed, context)


def may_continue(context: Any) -> bool:
    """Return whether a run that is already in the folder of this job is the job's own.

    The sweeper of this package gives every run a folder of its own. Slurm counts the restarts of a job.
    """
    planned = any(context.sweeper.get(key) is not None for key in ("error_file", "resume"))
    return planned or int(os.environ.get("SLURM_RESTART_COUNT", "0")) > 0


def continue_run(folder: Path, composed: DictConfig, context: Any) -> None:
    """Continue the run in a folder; a finished one stays as it is, unless `cfn resume` changes a key."""
    asked = context.sweeper.get("resume")
    changes = [] if asked is None else list(asked.changes)
    if (state := read_summary(folder).get("state")) in ("finished", "pruned") and not changes:
        log.info(f"{as_typed(folder)} is {state}.")
        return
    from cfn.training.resume import resume  # PyTorch is slow to import

    trusted = names_to_import(composed) if asked is None else list(asked.trust)
    resume(folder, changes, trusted, further_tracker(context))


def further_tracker(context: Any) -> "ExtraTracker":
    """Return the maker of the tracker that draws pictures and, in a study that prunes, asks the study."""
    from cfn.tracking.pictures import Pictures

    if context.sweeper.get("trial") is None:
        return Pictures
    from cfn.launch.pruning import Pruning  # imports Optuna
    from cfn.tracking.base import Trackers

    return lambda run, mirror: Trackers([Pictures(run, mirror), Pruning(run, context.sweeper)])


def names_to_import(composed: DictConfig) -> list[str]:
    """Return the names that the command itself asked to import: they are trusted when its run continues."""
    values: Any = OmegaConf.to_container(composed)
    groups = [values.get(group) or {} for group in OFFERED]
    targets = [group.get("_target_") for group in (*groups, *groups[1].values()) if isinstance(group, dict)]
    module, colon, _ = str(groups[0].get("id", "")).partition(":")
    return [str(name) for name in (*targets, module if colon else None) if name]
