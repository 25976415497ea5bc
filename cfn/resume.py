"""`cfn resume RUN`: a run goes on exactly where its last checkpoint was, in the same folder."""

import copy
import dataclasses
import logging
import logging.config
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from zstandard import ZstdError

from cfn import __version__
from cfn.analysis.files import latest, read_yaml
from cfn.checkpoint import Checkpoint, Checkpoints, unreadable
from cfn.config import CONF, Config, from_values, parse_override
from cfn.errors import UsageError
from cfn.run import Run
from cfn.storage import BrokenError

log = logging.getLogger(__name__)

CHANGEABLE = (
    "steps",
    "device",
    "threads",
    "compile",
    "eval.every",
    "eval.episodes",
    "eval.steps",
    "checkpoint.every",
    "checkpoint.keep",
    "env.on_error",
)
"""Keys that say how long and where a run goes on, not what is learned."""
ELSEWHERE = ("tracker", "outputs", "suite")
"""Groups that say nothing of it either."""
MISFITS = (BrokenError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, AssertionError, ZstdError)
"""What loading a state may raise that is of another run, or of nobody's."""
ATTEMPTS = 3


def resume(folder: Path, overrides: Sequence[str], trusted: Sequence[str]) -> None:
    """Go on with a run.

    Args:
        folder: The run's.
        overrides: `key=value`, of the keys that can be changed.
        trusted: Classes and modules of the user's own that the run's config may name.
    """
    run = Run.open(folder)
    changed = _changed(run, overrides)
    _log_to(run.folder / "train.log")
    with changed.lock():
        config = read_config(changed, trusted)
        if _never_saved(changed, config):
            _begin_anew(changed, config)
            return
        training, checkpoint = restored(changed, config, _load)
        written = checkpoint.read("written")
        if checkpoint.step >= config.steps:
            if run.state == "finished":
                more = f"steps={2 * checkpoint.step} (say) would go on to more"
                raise UsageError(f"{run.shown} is finished, at step {checkpoint.step:,}: {more}")
            if written["keys"]["steps"] != changed.keys["steps"]:  # it was not to end here, and has not
                raise UsageError(f"steps={config.steps}: {run.shown} is at step {checkpoint.step:,} already: name more")
        Checkpoints(run.checkpoints, config.checkpoint.keep).forget_after(checkpoint.step)
        run.rewind(checkpoint.step, written["metrics"])
        training.seconds = written["seconds"]
        if changed.config != run.config:
            changed.record("config", changed.config)
        log.info(f"Resumed at step {checkpoint.step:,}.")
        training.run(changed)  # if it was killed at its very end, there is only that to be written down


def _load(training: Any, checkpoint: Checkpoint) -> None:
    training.load(checkpoint.read)
    written = checkpoint.read("written")
    if training.step != checkpoint.step or not (int(written["metrics"]) >= 0 and float(written["seconds"]) >= 0):
        raise ValueError("its numbers contradict each other")


def _never_saved(run: Run, config: Config) -> bool:
    """Whether a run was killed before its first checkpoint was due."""
    due = config.checkpoint.every
    if due is None or run.state != "running" or any(run.checkpoints.glob("*")):
        return False
    return latest(run.folder, "step").get("step", 0) < due


def _begin_anew(run: Run, config: Config) -> None:
    """From the first step: the same seed gives the same run, so what was done is done again."""
    from cfn.train import Training  # PyTorch is slow to import

    training = Training(config)
    run.rewind(0, 0)
    run.record("config", run.config)
    log.info("It was killed before its first checkpoint, and begins anew.")
    training.run(run)


def read_config(run: Run, trusted: Sequence[str] = ()) -> Config:
    """The config of a run that is there, with nothing imported but what is the package's own or trusted."""
    try:
        choices = dict(read_yaml(run.folder / ".hydra" / "hydra.yaml")["hydra"]["runtime"]["choices"])
    except (UsageError, KeyError, TypeError, ValueError):
        choices = {"env": run.env, "agent": run.agent, "bonus": run.bonus}  # names, for messages alone
    try:
        return from_values(run.config, choices, trusted)
    except (TypeError, AttributeError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"the config of {run.shown} cannot be read ({reason})") from error


def restored(run: Run, config: Config, load: Callable[[Any, Checkpoint], None]) -> tuple[Any, Checkpoint]:
    """The run's training, into which its newest whole checkpoint was loaded, and that checkpoint."""
    from cfn.train import Training  # PyTorch is slow to import

    training = Training(config)
    for _ in range(ATTEMPTS):
        try:
            checkpoint = Checkpoints(run.checkpoints).latest()
        except FileNotFoundError:  # of a run that goes on meanwhile, it was removed for a newer one
            continue
        if checkpoint is None:
            missing = not any(run.checkpoints.glob("*"))
            state = "it has not written any, or they were removed" if missing else "all are broken"
            raise UsageError(f"{run.shown} has no checkpoint that could be used: {state}")
        try:
            _require_same(run, checkpoint)
            load(training, checkpoint)
        except FileNotFoundError:  # likewise
            continue
        except OSError as error:
            raise unreadable(run.checkpoints, error) from error
        except MISFITS as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise UsageError(f"the checkpoint of step {checkpoint.step:,} does not fit this run ({reason})") from error
        if checkpoint.version != __version__:
            log.warning(f"The checkpoint is of cfn {checkpoint.version}, this is {__version__}: numbers may differ.")
        return training, checkpoint
    raise UsageError(f"the checkpoints of {run.shown} are removed before they can be read: set checkpoint.keep higher")


def _require_same(run: Run, checkpoint: Checkpoint) -> None:
    """Refuse a config that was altered since the checkpoint was written, where that changes what is learned."""
    now, then = run.keys, checkpoint.read("written")["keys"]
    for key in sorted(now.keys() | then.keys()):
        fixed = key not in CHANGEABLE and key.partition(".")[0] not in ELSEWHERE
        if fixed and now.get(key) != then.get(key):
            was = f"was {then.get(key)} when the checkpoint was written: it cannot be changed in a run that has begun"
            raise UsageError(f"{key} is {now.get(key)} in the config of {run.shown} and {was}")


def _changed(run: Run, overrides: Sequence[str]) -> Run:
    """The run with other values of keys that can be changed."""
    values = copy.deepcopy(run.config)
    for override in overrides:
        key, value = parse_override(override)
        if key not in CHANGEABLE:
            can = ", ".join(CHANGEABLE)
            raise UsageError(f"{key} cannot be changed in a run that has begun; what can: {can}")
        *groups, name = key.split(".")
        place = values
        for group in groups:
            place = place.setdefault(group, {})
        place[name] = value
    return dataclasses.replace(run, config=values)


def _log_to(path: Path) -> None:
    """As in `cfn train`: sentences on the terminal, dated lines in the run's log."""
    settings = read_yaml(CONF / "hydra" / "job_logging" / "cfn.yaml")
    settings["handlers"]["file"]["filename"] = str(path)
    logging.config.dictConfig(settings)
