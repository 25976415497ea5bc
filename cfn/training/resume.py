"""`cfn resume RUN`: continue a run in its folder, from its newest intact checkpoint."""

import contextlib
import copy
import dataclasses
import logging
import logging.config
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from zstandard import ZstdError

from cfn import __version__
from cfn.checkpoints.encoding import CorruptError
from cfn.checkpoints.store import Checkpoint, Checkpoints, unreadable
from cfn.config import CONF, Config, from_values, parse_override
from cfn.errors import AlreadyDoneError, UsageError, one_line
from cfn.runs.folder import Run
from cfn.runs.reading import latest, read_yaml
from cfn.training.loop import ExtraTracker, Training

log = logging.getLogger(__name__)

CHANGEABLE = (
    "steps",
    "device",
    "threads",
    "env_workers",
    "compile",
    "eval.every",
    "eval.episodes",
    "eval.steps",
    "eval.max_steps",
    "checkpoint.every",
    "checkpoint.keep",
    "env.on_error",
)
"""Keys that a resumed run may change: they do not affect what is learned."""
IRRELEVANT_GROUPS = ("tracker", "outputs", "suite", "pictures", "objective")
"""Groups that do not affect learning."""
STATE_ERRORS = (
    CorruptError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    RuntimeError,
    AssertionError,
    ZstdError,
)
"""Errors raised when a state is corrupt or belongs to another run."""
ATTEMPTS = 3
"""Number of attempts to read a checkpoint that a running process may replace."""


def resume(
    folder: Path, overrides: Sequence[str], trusted: Sequence[str], add_tracker: ExtraTracker | None = None
) -> None:
    """Continue a run.

    Args:
        folder: Run folder.
        overrides: New values of changeable keys, as `key=value`.
        trusted: Classes and modules outside this package that the config may name.
        add_tracker: Maker of a further tracker.
    """
    run = Run.open(folder)
    changed = _with_overrides(run, overrides)
    _log_to(run.files.log)
    with contextlib.ExitStack() as closing, changed.lock():
        config = config_of(changed, trusted)
        if _stopped_before_first_checkpoint(run, config_of(run, trusted)):  # the command may change checkpoint.every
            _start_again(changed, config, add_tracker)
            return
        training, checkpoint = restore(changed, config, _load)
        closing.callback(training.close)
        written = checkpoint.read("written")
        if checkpoint.step >= config.steps:
            if run.recorded_state == "finished":
                hint = f"steps={2 * checkpoint.step} (for example) would extend it"
                raise AlreadyDoneError(f"{run.shown} is finished, at step {checkpoint.step:,}", hint)
            if written["keys"]["steps"] != changed.keys["steps"]:  # the user asked for fewer steps than were done
                done = f"{run.shown} is already at step {checkpoint.step:,}"
                raise UsageError(f"steps={config.steps}: {done}; choose a larger `steps`")
        Checkpoints(run.files.checkpoints, config.checkpoint.keep).remove_after(checkpoint.step)
        run.rewind(checkpoint.step, written["metrics"])
        training.seconds = written["seconds"]
        if changed.config != run.config:
            changed.write_config()
        log.info(f"Resumed at step {checkpoint.step:,}.")
        training.run(changed, add_tracker)  # a run killed after its last step only writes its end


def restore(run: Run, config: Config, load: Callable[[Training, Checkpoint], None]) -> tuple[Training, Checkpoint]:
    """Return a training restored from the run's newest intact checkpoint, and that checkpoint.

    Args:
        run: Run to restore.
        config: Its config.
        load: Function that loads the checkpoint into the training.
    """
    training = Training(config)
    try:
        return training, _load_newest(run, training, load)
    except BaseException:
        training.close()
        raise


def _load_newest(run: Run, training: Training, load: Callable[[Training, Checkpoint], None]) -> Checkpoint:
    """Load the newest intact checkpoint and return it."""
    for _ in range(ATTEMPTS):
        try:
            checkpoint = Checkpoints(run.files.checkpoints).latest()
        except FileNotFoundError:  # a running process replaced it
            continue
        if checkpoint is None:
            missing = not Checkpoints(run.files.checkpoints).paths
            reason = "none was written, or they were removed" if missing else "all are damaged"
            raise UsageError(f"{run.shown} has no usable checkpoint: {reason}")
        try:
            _require_same_config(run, checkpoint)
            load(training, checkpoint)
        except FileNotFoundError:  # a running process replaced it
            continue
        except OSError as error:
            raise unreadable(run.files.checkpoints, error) from error
        except STATE_ERRORS as error:
            sentence = f"the checkpoint of step {checkpoint.step:,} does not fit this run ({one_line(error)})"
            raise UsageError(sentence) from error
        if checkpoint.version != __version__:
            log.warning(
                f"cfn {checkpoint.version} wrote the checkpoint, and this is cfn {__version__}: numbers may differ."
            )
        return checkpoint
    raise UsageError(f"the checkpoints of {run.shown} are replaced faster than they can be read: raise checkpoint.keep")


def config_of(run: Run, trusted: Sequence[str] = ()) -> Config:
    """Return the checked config of an existing run; only this package's classes and trusted names are imported."""
    try:
        return from_values(run.config, run.choices, trusted)
    except (TypeError, AttributeError) as error:
        raise UsageError(f"the config of {run.shown} cannot be read ({one_line(error)})") from error


def _load(training: Training, checkpoint: Checkpoint) -> None:
    training.load(checkpoint.read)
    written = checkpoint.read("written")
    if training.step != checkpoint.step or not (int(written["metrics"]) >= 0 and float(written["seconds"]) >= 0):
        raise ValueError("its numbers contradict each other")


def _stopped_before_first_checkpoint(run: Run, config: Config) -> bool:
    """Return whether no checkpoint was completed yet; files of one that was being written do not count.

    Args:
        run: Run as it was recorded, without the changes of the command.
        config: Its config.
    """
    first = config.checkpoint.every
    if first is None or run.recorded_state == "finished" or Checkpoints(run.files.checkpoints).paths:
        return False
    step = float(latest(run.folder, "step").get("step", 0))
    return step < first + config.num_envs  # metrics of the checkpoint's own step come first


def _start_again(run: Run, config: Config, add_tracker: ExtraTracker | None) -> None:
    """Train from the first step: the same seed repeats the steps that were lost."""
    with contextlib.closing(Training(config)) as training:
        run.rewind(0, 0)
        run.write_config()
        log.info("The run ended before its first checkpoint and starts again from step 0.")
        training.run(run, add_tracker)


def _require_same_config(run: Run, checkpoint: Checkpoint) -> None:
    """Raise `UsageError` if a key that affects learning was altered since the checkpoint was written."""
    now, then = run.keys, checkpoint.read("written")["keys"]
    for key in sorted(now.keys() | then.keys()):
        fixed = key not in CHANGEABLE and key.partition(".")[0] not in IRRELEVANT_GROUPS
        if fixed and now.get(key) != then.get(key):
            was = f"was {then.get(key)} at the checkpoint: it cannot be changed in a started run"
            raise UsageError(f"{key} is {now.get(key)} in the config of {run.shown} but {was}")


def require_changeable(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the values of overrides by key; raise `UsageError` if a started run may not change one of the keys."""
    values = dict(map(parse_override, overrides))
    for key in values:
        if key not in CHANGEABLE:
            raise UsageError(f"{key} cannot be changed in a started run; these keys can: {', '.join(CHANGEABLE)}")
    return values


def _with_overrides(run: Run, overrides: Sequence[str]) -> Run:
    """Return the run with new values of changeable keys."""
    values: dict[str, Any] = copy.deepcopy(dict(run.config))
    for key, value in require_changeable(overrides).items():
        *groups, name = key.split(".")
        place = values
        for group in groups:
            place = place.setdefault(group, {})
        place[name] = value
    return dataclasses.replace(run, config=values)


def _log_to(path: Path) -> None:
    """Configure logging as in `cfn train`: messages on the terminal, dated lines in the log file."""
    settings = read_yaml(CONF / "hydra" / "job_logging" / "cfn.yaml")
    settings["handlers"]["file"]["filename"] = str(path)
    logging.config.dictConfig(settings)
