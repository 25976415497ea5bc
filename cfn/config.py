"""The typed config: the values that Hydra composed are checked against the code before a run starts.

The top-level keys are the fields of `Config`; the keys of a group are the constructor arguments of the class (or
function) that its `_target_` names (`cfn.schema`).
"""

import copy
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_type_hints

import yaml
from annotated_types import Ge, Le
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from cfn import schema
from cfn.errors import UsageError
from cfn.schema import CONF as CONF
from cfn.schema import Component
from cfn.types import NonNegative, Positive, PositiveFloat

QUOTE = """(a value with spaces, commas or brackets needs quotes: "key='a, b'")"""

OFFERED = {
    "env": ("render_mode", "run_seed"),
    "agent": ("observation_space", "action_space", "seed", "device", "frames", "frame_stack", "num_envs", "steps"),
    "bonus": ("observation_space", "action_space", "seed", "device", "frames", "num_envs", "steps"),
    "tracker": ("run",),
}
"""Arguments that the training loop passes to a constructor that names them. All its other arguments are config keys."""

ELSEWHERE = {"env": ("on_error",)}
"""Keys of a group that are not arguments of its constructor: the loop uses them."""


@dataclass(frozen=True)
class Eval:
    """`eval.*`.

    Attributes:
        every: Agent steps between evaluations; None: no evaluations.
        episodes: Episodes per evaluation, played in parallel.
        steps: Minimum steps per evaluation; more episodes are played until it is reached.
        max_steps: Maximum steps per episode; None: the environment's own limit, or 10,000 if it has none.
    """

    every: Positive | None
    episodes: Positive
    steps: NonNegative = 0
    max_steps: Positive | None = None


@dataclass(frozen=True)
class Checkpoint:
    """`checkpoint.*`.

    Attributes:
        every: Agent steps between checkpoints; None: no checkpoints.
        keep: Number of newest checkpoints to keep.
    """

    every: Positive | None
    keep: Positive


@dataclass(frozen=True)
class Config:
    """The keys of every run. `cfn train --help` shows these explanations.

    Attributes:
        env: Environment.
        agent: Agent.
        bonus: Bonus.
        tracker: Tracker.
        steps: Length of the run, in agent steps summed over all environments.
        seed: Seed of everything random.
        num_envs: Number of environments stepped together.
        frame_stack: Images per observation of the agent; bonuses see only the newest image.
        reward_clip: Bound of the reward that the agent learns from, clip(r_ext + r_int, -reward_clip, reward_clip);
            None: no clipping.
        device: Device of the networks; auto: a GPU if available.
        threads: CPU threads of PyTorch; None: PyTorch's default.
        eval: Evaluations.
        outputs: Parent folder of all runs.
        compile: Whether whole updates are compiled: takes up to minutes at the start, then runs faster.
        bf16: Whether forward passes use bfloat16: faster on GPUs that support it, and less precise.
        checkpoint: Checkpoints.
        extrinsic_clip: Bound of the environment's reward r_ext before the bonus is added; None: no clipping.
        on_error: Reaction to an error of an environment: stop with a checkpoint, or reset the environment and continue.
        pictures: Whether to draw the pictures of a run while it trains; `cfn plot` draws them afterwards.
        objective: Score by which a tuning study compares runs: a metric and, of its values, the last, mean or best.
        env_workers: Number of processes that step the `num_envs` environments, so that several cores do; at most
            `num_envs`. It changes no number.
    """

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
    extrinsic_clip: PositiveFloat | None = None
    on_error: Literal["stop", "reset"] = "stop"
    pictures: bool = True
    objective: str = "eval/return:last"
    env_workers: Positive = 1


def check(composed: DictConfig, choices: Mapping[str, Any]) -> Config:
    """Return the `Config` of a composed config; raise `UsageError` with the key if a value is wrong.

    Args:
        composed: Config composed by Hydra.
        choices: Option chosen in each group (`hydra.runtime.choices`).
    """
    if choices.get("preset") != "paper" and choices.get("experiment") == "none":
        preset = choices.get("preset")
        raise UsageError(f"preset={preset} needs an experiment: add experiment=NAME, or leave preset out")
    require_preset(str(choices.get("preset")), str(choices.get("experiment")))
    for group in OFFERED:  # before interpolations that point to it
        values = composed.get(group)
        if not isinstance(values, DictConfig) or "_target_" not in values:
            raise UsageError(schema.without_target(group, str(choices.get(group))))
    require_values(composed)
    return from_values(OmegaConf.to_container(composed, resolve=True), choices)  # type: ignore[arg-type]


def require_preset(preset: str, experiment: str) -> None:
    """Raise `UsageError` if an experiment of this package lacks this preset; those of users need not have any."""
    sizes = [path.parent.name for path in sorted((CONF / "preset").glob(f"*/{experiment}.yaml"))]
    if sizes and preset not in sizes and (CONF / "preset" / f"{preset}.yaml").is_file():
        others = " or ".join(f"preset={size}" for size in sizes)
        raise UsageError(f"preset={preset}: experiment={experiment} has no such size: use {others}")


def require_values(composed: DictConfig) -> None:
    """Raise `UsageError` if a key of a composed config, or of a group of it, has no value."""
    for key in sorted(OmegaConf.missing_keys(composed)):  # full keys, also those of a group
        raise UsageError(schema.not_set(key))


def refuse_untrusted(composed: DictConfig, trusted: Collection[str]) -> None:
    """Raise `UsageError` if a config composed from a file names something to import that is not trusted.

    Args:
        composed: Config composed by Hydra.
        trusted: Classes and modules outside this package that may be imported.
    """
    _refuse_untrusted(OmegaConf.to_container(composed, resolve=True), trusted)  # type: ignore[arg-type]


def from_values(
    values: Mapping[str, Any], choices: Mapping[str, Any], trusted: Collection[str] | None = None
) -> Config:
    """Return the `Config` of plain values without interpolations.

    Args:
        values: Nested values by key.
        choices: Option chosen in each group.
        trusted: For values from a file that may come from a stranger: classes and modules outside this package that may
            be imported. A module stands for everything defined in it and below it. None: all.
    """
    checked: dict[str, Any] = copy.deepcopy(dict(values))
    checked.pop("suite", None)  # tables that other keys refer to
    if "on_error" in checked:
        raise UsageError("on_error is not a key: write env.on_error")
    env = checked.get("env")
    on_error = env.get("on_error", "stop") if isinstance(env, dict) else "stop"
    hint = get_type_hints(Config, include_extras=True)["on_error"]
    checked["on_error"] = schema.checked_value("env.on_error", hint, on_error)
    if trusted is not None:
        _refuse_untrusted(checked, trusted)
    for group in OFFERED:
        checked[group] = component(group, checked.get(group), choices)
    config = Config(**schema.checked(Config, checked, prefix=""))
    if config.num_envs > config.steps:
        raise UsageError(f"num_envs={config.num_envs}: should be at most steps={config.steps}")
    if config.env_workers > config.num_envs:
        raise UsageError(
            f"env_workers={config.env_workers}: should be at most num_envs={config.num_envs}, because every process "
            "steps at least one environment"
        )
    return config


def component(group: str, values: Any, choices: Mapping[str, Any]) -> Component:
    """Return the checked option of a group.

    Args:
        group: Config group.
        values: Keys of the chosen option.
        choices: Option chosen in each group.
    """
    elsewhere = ELSEWHERE.get(group, ())
    if isinstance(values, dict):
        values = {key: value for key, value in values.items() if key not in elsewhere}
    parts = {key.partition("@")[2]: str(option) for key, option in choices.items() if key.startswith(f"{group}@")}
    return schema.component(group, str(choices.get(group)), values, OFFERED[group], elsewhere, parts)


def _refuse_untrusted(values: Mapping[str, Any], trusted: Collection[str]) -> None:
    """Raise `UsageError` if a config from a file would import something outside this package that is not trusted."""
    foreign: dict[str, str] = {}
    for group in OFFERED:
        configs = [yaml.safe_load(path.read_text(encoding="utf-8")) or {} for path in (CONF / group).glob("*.yaml")]
        known = [config["_target_"] for config in configs if "_target_" in config]
        foreign |= {key: target for key, target in _targets(group, values.get(group)) if target not in known}
    env = values.get("env")
    module, colon, _ = str(env.get("id", "") if isinstance(env, dict) else "").partition(":")
    if colon:  # Gymnasium imports the module before it
        foreign["env.id"] = module
    refused = {key: name for key, name in foreign.items() if not _is_trusted(name, trusted)}
    if refused:
        raise UsageError(_ask_for_trust(refused))
    for key, name in foreign.items():
        if key != "env.id" and name not in trusted:  # its module is trusted, but a module also has what it imports
            origin = getattr(schema.locate(key, name), "__module__", None)
            if not _is_trusted(str(origin), trusted):
                raise UsageError(f"{key}={name} is part of {origin}: if you trust it, add --trust {name}")


def _targets(key: str, values: Any) -> Iterator[tuple[str, str]]:
    """Yield the key and the value of every `_target_` in a group, also of parts at any depth."""
    if isinstance(values, dict):
        if "_target_" in values:
            yield f"{key}._target_", str(values["_target_"])
        for name, value in values.items():
            yield from _targets(f"{key}.{name}", value)


def _is_trusted(name: str, trusted: Collection[str]) -> bool:
    return any(name == other or name.startswith(f"{other}.") for other in trusted)


def _ask_for_trust(names: Mapping[str, str]) -> str:
    """Return a sentence on all names (by key) that are not trusted yet."""
    shown = ", ".join(f"{key}={name}" for key, name in names.items())
    needed = list(dict.fromkeys(names.values()))
    modules = list(dict.fromkeys(name.rpartition(".")[0] or name for name in needed))
    flags = " ".join(f"--trust {name}" for name in needed)
    if len(names) == 1:
        return f"{shown} is not part of this package: if you trust it, add {flags}"
    shorter = f" (or {' '.join(f'--trust {m}' for m in modules)})" if len(modules) < len(needed) else ""
    return f"{shown} are not part of this package: if you trust them, add {flags}{shorter}"


def parse_override(text: str) -> tuple[str, Any]:
    """Return key and value of `key=value`, parsed by Hydra's rules."""
    try:
        override = OverridesParser.create().parse_override(text)
        if override.is_sweep_override():
            raise UsageError(f"{text}: several values would be a sweep, but this is one run")
        return override.get_key_element(), override.value()
    except HydraException as error:
        raise UsageError(f"{text}: this is not of the form key=value {QUOTE}") from error


# ${cfn_equal:a,b}, ${cfn_if:condition,a,b} and ${cfn_times:a,b}: derive one key from the value of another.
OmegaConf.register_new_resolver("cfn_equal", lambda a, b: a == b, replace=True)
OmegaConf.register_new_resolver("cfn_if", lambda condition, a, b: a if condition else b, replace=True)
OmegaConf.register_new_resolver("cfn_times", lambda a, b: a * b, replace=True)

# The default `open_groups` of conf/config.yaml. Hydra refuses keys that no YAML file lists, unless they are marked with
# a +. In these groups it accepts all keys, and the constructor decides, for each run of a sweep and its own choices.
ConfigStore.instance().store(
    "open_groups", OmegaConf.create({group: OmegaConf.create({}, flags={"struct": False}) for group in OFFERED})
)
