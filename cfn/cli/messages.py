"""Error messages: every error as one sentence that names the key or path and says what to do."""

import errno
import re
import traceback
from pathlib import Path

import yaml
from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from cfn.config import QUOTE
from cfn.errors import UsageError
from cfn.schema import unknown_key

PACKAGE = Path(__file__).parents[1]


def describe(error: BaseException) -> str:
    """Return one sentence that describes an error."""
    if isinstance(error, UsageError):
        return str(error)
    if isinstance(error, HydraException | OmegaConfBaseException):
        # Hydra wraps the errors of a launcher or sweeper that it constructs.
        return str(error.__cause__) if isinstance(error.__cause__, UsageError) else _config_error(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    if isinstance(error, OSError):
        return _file_error(error, place.name)
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    if isinstance(error, yaml.YAMLError | UnicodeError):
        return f"a config file cannot be read: {_one_line(error)}"
    if isinstance(error, ValueError) and "hydra" in Path(place.filename).parts:
        return _one_line(error)
    is_bug = Path(place.filename).is_relative_to(PACKAGE)
    return (
        f"{type(error).__name__}: {_one_line(error)} ({Path(place.filename).name}, line {place.lineno}). "
        f"{'This is a bug: ' if is_bug else ''}HYDRA_FULL_ERROR=1 before the command shows the traceback"
    )


def _config_error(error: HydraException | OmegaConfBaseException) -> str:
    cause = error.__cause__
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, option = error.missing_cfg_file.rpartition("/")
        hint = ""
        if id := re.fullmatch(r"env/(.+-v\d+)", error.missing_cfg_file):
            group, option = "env", id[1]
            hint = f"; an id of Gymnasium is written env=gym env.id={option}"
        return f"{group}={option}: there is no such option; choose from {', '.join(sorted(error.options))}{hint}"
    if isinstance(cause, ConfigKeyError | ConfigAttributeError) and isinstance(error, ConfigCompositionException):
        known = cause.parent_node.keys() if isinstance(cause.parent_node, DictConfig) else []
        return unknown_key(str(cause.full_key), [key for key in known if key != "hydra"])
    if isinstance(cause, OmegaConfBaseException):
        return _omegaconf_error(cause)
    if sweep := re.match("Ambiguous value for argument '(.*)'", str(error)):
        key, _, values = sweep[1].partition("=")
        return f"{sweep[1]}: several values are a sweep: add -m (a list is written {key}=[{values}])"
    if sweep := re.match("Sweep parameters '(.*)' requires --multirun", str(error)):
        return f"{sweep[1]}: a range or a choice is a sweep: add -m"
    if part := re.match(r"Could not override '(\w+)@([\w.]+)'", str(error)):
        return f"{part[2]}: the chosen {part[1]} has no such part; bonus=noveld has bonus.novelty, for example"
    if added := re.match("Could not append to config. An item is already at '(.*)'", str(error)):
        return f"+{added[1]}: this key exists already: leave out the +"
    if isinstance(error, OverrideParseException):
        return f"{error.override}: this is not of the form key=value {QUOTE}"
    return _omegaconf_error(error) if isinstance(error, OmegaConfBaseException) else _one_line(error)


def _omegaconf_error(error: OmegaConfBaseException) -> str:
    """Return the first line of OmegaConf's message; the others describe its internal objects."""
    message = (str(error.msg or error).splitlines() or [type(error).__name__])[0]
    return f"{error.full_key}: {message}" if error.full_key else message


def _file_error(error: OSError, function: str) -> str:
    path = f"{error.filename}: " if error.filename else ""
    hint = ": choose a writable folder with outputs=DIR" if function == "mkdir" else ""
    if error.errno == errno.ENOSPC:
        hint = "; the files written so far are kept: free some space, then cfn resume RUN continues"
    return f"{path}{error.strerror or error}{hint}"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
