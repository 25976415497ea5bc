"""The typed config: what Hydra composed, checked against what the code declares, before anything starts.

The top-level keys are the fields of `Config`. The keys of a group are the arguments of the class (or function) that
its `_target_` names: their annotations are the schema, so a new environment, agent, bonus or tracker, ours or a
user's own, is checked without another line. Every error names its full key.
"""

import copy
import difflib
import inspect
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import yaml
from annotated_types import Ge, Le
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf
from pydantic import TypeAdapter, ValidationError

from cfn import naming
from cfn.errors import BadValueError, UsageError
from cfn.types import NonNegative, Positive, PositiveFloat

_HERE = Path(__file__).resolve().parent
CONF = _HERE / "conf" if (_HERE / "conf").is_dir() else _HERE.parent / "conf"
"""The folder of the configs: inside the package when installed from a wheel, at the top level in a checkout."""

QUOTE = """(a value with spaces, commas or brackets needs quotes: "key='a, b'")"""

# What the loop itself offers to each group's constructor, which takes of it what it names; its other arguments are the
# keys of the group's config.
OFFERED = {
    "env": ("render_mode",),
    "agent": ("observation_space", "action_space", "seed", "device", "frames", "frame_stack", "num_envs", "steps"),
    "bonus": ("observation_space", "seed", "device", "frames", "steps"),
    "tracker": ("run",),
}


@dataclass(frozen=True)
class Component:
    """One group's choice: the class it names and the keys it is made with, checked but not yet made."""

    group: str
    name: str
    target: Callable[..., Any]
    keys: dict[str, Any]

    def build(self, **offered: Any) -> Any:
        """Make it, from the config's keys and whatever it takes of what the loop offers."""
        taken = inspect.signature(self.target).parameters.keys() & offered.keys()
        try:
            return self.target(**{name: offered[name] for name in taken}, **self.keys)
        except BadValueError as error:
            raise UsageError(f"{self.group}.{error.key}: {error.sentence}") from error
        except TypeError as error:
            raise UsageError(f"{self.group}={self.name} cannot be made: {error}") from error


@dataclass(frozen=True)
class Eval:
    """`eval.*`: how often the run is evaluated, in environment steps, over how many episodes, and steps at least."""

    every: Positive
    episodes: Positive
    steps: NonNegative = 0


@dataclass(frozen=True)
class Checkpoint:
    """`checkpoint.*`: how often the run is saved, in environment steps, and how many of the last are kept."""

    every: Positive | None
    keep: Positive


@dataclass(frozen=True)
class Config:
    """The keys of every run; `conf/base.yaml` says what each is for."""

    env: Component
    agent: Component
    bonus: Component
    tracker: Component
    steps: Positive
    seed: NonNegative
    num_envs: Positive
    frame_stack: Positive
    reward_clip: PositiveFloat | None
    device: Literal["auto", "cpu", "cuda", "mps"]
    threads: Annotated[int, Ge(1), Le(1024)] | None
    eval: Eval
    outputs: str
    compile: bool = False
    bf16: bool = False
    checkpoint: Checkpoint = Checkpoint(every=None, keep=2)
    on_error: Literal["stop", "reset"] = "stop"


def check(composed: DictConfig, choices: Mapping[str, Any]) -> Config:
    """Turn what Hydra composed into a `Config`, or say which key is wrong.

    Args:
        composed: The job's config.
        choices: Which option was chosen of each group (`hydra.runtime.choices`).
    """
    if choices.get("preset") != "paper" and choices.get("experiment") == "none":
        preset = choices.get("preset")
        raise UsageError(f"preset={preset} belongs to an experiment: add experiment=NAME, or leave it out")
    for key in OmegaConf.missing_keys(composed):
        raise UsageError(f"{key} is not set and has no default: add {key}=... to the command")
    return from_values(OmegaConf.to_container(composed, resolve=True), choices)  # type: ignore[arg-type]


def from_values(values: dict[str, Any], choices: Mapping[str, Any], trusted: Container[str] | None = None) -> Config:
    """The `Config` of plain values, without interpolations.

    Args:
        values: The values by key, groups nested.
        choices: Which option was chosen of each group.
        trusted: For values from a file, which may be anyone's: beside the package's own, the only classes and modules
            that may be imported. None: any.
    """
    values = copy.deepcopy(values)
    values.pop("suite", None)  # the tables that other keys point into
    env = values.get("env")
    values["on_error"] = env.pop("on_error", "stop") if isinstance(env, dict) else "stop"
    if trusted is not None:
        _refuse_strangers(values, trusted)
    for group, offered in OFFERED.items():
        values[group] = _component(group, str(choices.get(group)), values.get(group), offered)
    hint = get_type_hints(Config, include_extras=True)["on_error"]
    values["on_error"] = _checked_value("env.on_error", hint, values["on_error"])
    config = Config(**_checked(Config, values, prefix=""))
    if config.num_envs > config.steps:
        raise UsageError(f"num_envs={config.num_envs}: should be at most steps={config.steps}")
    return config


def _refuse_strangers(values: Mapping[str, Any], trusted: Container[str]) -> None:
    """Refuse to import what a file names, unless it is of this package or the user trusts it."""
    for group in OFFERED:
        keys = values.get(group)
        target = str(keys.get("_target_")) if isinstance(keys, dict) else None
        configs = [yaml.safe_load(path.read_text(encoding="utf-8")) or {} for path in (CONF / group).glob("*.yaml")]
        if target not in [config["_target_"] for config in configs if "_target_" in config]:
            _require_trust(f"{group}._target_", str(target), trusted)
    module, colon, _ = str(values["env"].get("id", "")).partition(":")
    if colon:  # Gymnasium imports what stands before it
        _require_trust("env.id", module, trusted)


def _require_trust(key: str, name: str, trusted: Container[str]) -> None:
    if name not in trusted:
        raise UsageError(f"{key}={name} is not of this package: if you trust it, add --trust {name}")


def _component(group: str, name: str, values: Any, offered: tuple[str, ...]) -> Component:
    if not isinstance(values, dict) or "_target_" not in values:
        raise UsageError(f"{group}={name} has no _target_: its YAML must name the class that it configures")
    path = values.pop("_target_")
    try:
        target = get_object(path)
    except Exception as error:  # whatever a user's own module may do when it is imported
        reason = " ".join(str(error).split())
        raise UsageError(f"{group}._target_={path} cannot be imported: {reason}") from error
    if not callable(target):
        raise UsageError(f"{group}._target_={path} is not a class or a function")
    return Component(group, name, target, _checked(target, values, prefix=f"{group}.", offered=offered))


def _checked(
    target: Callable[..., Any], values: dict[str, Any], prefix: str, offered: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Check `values` against the signature of `target`, whose `offered` arguments are not keys."""
    try:
        hints = get_type_hints(target.__init__ if inspect.isclass(target) else target, include_extras=True)
    except (NameError, TypeError, AttributeError):  # annotations that mean nothing at run time
        hints = {}
    try:
        signature = inspect.signature(target)
    except ValueError as error:
        raise UsageError(f"{prefix}_target_: the keys of {target} cannot be told") from error
    parameters = {name: p for name, p in signature.parameters.items() if name not in offered}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in values:
        if name not in parameters and not takes_any:
            raise UsageError(unknown_key(prefix + name, parameters))
    for name, p in parameters.items():
        if name not in values and p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            raise UsageError(f"{prefix}{name} is not set and has no default: add {prefix}{name}=... to the command")
    return {name: _checked_value(prefix + name, hints.get(name, Any), value) for name, value in values.items()}


def _checked_value(key: str, hint: Any, value: Any) -> Any:
    if isinstance(hint, type) and is_dataclass(hint):
        if isinstance(value, hint):
            return value
        if not isinstance(value, dict):
            raise UsageError(f"{key}={value}: should be a group of keys ({', '.join(f.name for f in fields(hint))})")
        return hint(**_checked(hint, value, key + "."))
    try:
        checked = TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        wanted = dict.fromkeys(re.sub("^(Input|Value) should | after validation", "", e["msg"]) for e in error.errors())
        raise UsageError(f"{key}={value}: should {' or '.join(wanted).replace(' or be ', ' or ')}") from error
    if isinstance(value, bool) and not isinstance(checked, bool):
        raise UsageError(f"{key}={value}: should be a number, not true or false")
    return checked


def unknown_key(key: str, known: Iterable[Any]) -> str:
    """A sentence on a key that does not exist, with those that do."""
    *parents, name = key.split(".")
    where = ".".join(parents)
    options = sorted(str(option) for option in known if option != "_target_")
    close = difflib.get_close_matches(name, options, n=1)
    guess = f" (did you mean {'.'.join([*parents, close[0]])}?)" if close else ""
    if not options:
        return f"{key} is not a key{guess}: {where} has none"
    return f"{key} is not a key{guess}: the keys {f'of {where} ' if where else ''}are {', '.join(options)}"


def parse_override(text: str) -> tuple[str, Any]:
    """Key and value of `key=value`, as Hydra reads them."""
    try:
        override = OverridesParser.create().parse_override(text)
        if override.is_sweep_override():
            raise UsageError(f"{text}: several values are a sweep, and this is one run")
        return override.get_key_element(), override.value()
    except HydraException as error:
        raise UsageError(f"{text}: this is not of the form key=value {QUOTE}") from error


def run_folder(time: str, *, _root_: DictConfig) -> str:
    """The resolver behind `hydra.run.dir` and `hydra.sweep.subdir`: the run's folder, below `outputs`."""
    hydra, env = _root_.hydra, _root_.get("env") or {}
    swept = hydra.job.override_dirname if hydra.mode == RunMode.MULTIRUN else ""
    env_id = None if OmegaConf.is_missing(env, "id") else env.get("id")
    folder = naming.folder(hydra.runtime.choices, env_id, time, swept, _root_.seed)
    return str(naming.unused(Path(str(_root_.outputs)), folder))


OmegaConf.register_new_resolver("cfn_run_folder", run_folder, replace=True)
# ${cfn_equal:a,b}: lets one key follow from another's value.
OmegaConf.register_new_resolver("cfn_equal", lambda a, b: a == b, replace=True)
