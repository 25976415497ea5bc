"""Completion of a composed config: the agent in place of `agent=auto`, and the run folder."""

import contextlib
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from cfn import naming
from cfn.config import component, require_values
from cfn.errors import FAULTS, UsageError

AUTO = "auto"
"""Option of the group `agent` that holds one agent for each kind of actions: `agent.discrete`, `agent.continuous`."""
_NESTED = "agent@agent."
"""Beginning of the choices inside `agent=auto`."""

_kinds: dict[tuple[Callable[..., Any], str], str] = {}
"""Kind of actions of each environment seen so far, by class and keys."""


def without_hydra(composed: DictConfig) -> DictConfig:
    """Return a composed config without Hydra's own part."""
    return OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])


def with_agent(composed: DictConfig, choices: Mapping[str, Any]) -> tuple[DictConfig, dict[str, Any]]:
    """Return a composed config and its choices, with the agent for the environment's actions instead of `agent=auto`.

    Args:
        composed: Config composed by Hydra.
        choices: Option chosen in each group (`hydra.runtime.choices`).
    """
    if choices.get("agent") != AUTO:
        return composed, dict(choices)
    return with_agent_for(_action_kind(composed, choices), composed, choices)


def with_agent_for(kind: str, composed: DictConfig, choices: Mapping[str, Any]) -> tuple[DictConfig, dict[str, Any]]:
    """Return a composed config and its choices, with the agent for one kind of actions instead of `agent=auto`.

    Keys of `agent` itself (`agent.lr=...`) override those of the chosen agent.

    Args:
        kind: `discrete` or `continuous`.
        composed: Config composed by Hydra.
        choices: Option chosen in each group.
    """
    values: Any = OmegaConf.to_container(composed)
    agents = agents_by_kind(choices)
    if kind not in agents:
        raise UsageError(f"agent={AUTO} has no agent for {kind} actions: choose one with agent=NAME")
    own = {key: value for key, value in values["agent"].items() if key not in agents}
    values["agent"] = values["agent"][kind] | own
    others = {name: option for name, option in choices.items() if not name.startswith(_NESTED)}
    return OmegaConf.create(values), others | {"agent": agents[kind]}


def agents_by_kind(choices: Mapping[str, Any]) -> dict[str, str]:
    """Return the agents inside `agent=auto`, by kind of actions."""
    return {name.removeprefix(_NESTED): option for name, option in choices.items() if name.startswith(_NESTED)}


def _action_kind(composed: DictConfig, choices: Mapping[str, Any]) -> str:
    """Construct the environment, unless an equal one was seen before, and return its kind of actions."""
    import gymnasium as gym  # slow to import, and most runs name their agent

    from cfn.envs.generic import action_kind

    require_values(composed.env)
    env = component("env", OmegaConf.to_container(composed.env, resolve=True), choices)
    identity = (env.target, json.dumps(env.keys, default=str))
    if identity not in _kinds:
        with _silence():
            made = env.make(gym.Env, render_mode=None)
            with contextlib.suppress(*FAULTS):
                made.close()
        _kinds[identity] = action_kind(made.action_space, made.observation_space)
    return _kinds[identity]


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Hide log lines and warnings: the run constructs the environment again and shows them."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def run_folder(time: str, *, _root_: DictConfig) -> str:
    """Return the run folder below `outputs`; this is the resolver `cfn_run_folder` of conf/config.yaml."""
    hydra, env = _root_.hydra, _root_.get("env") or {}
    choices = hydra.runtime.choices
    if choices.get("agent") == AUTO:
        with contextlib.suppress(Exception):  # the run refuses an invalid environment with a better message
            choices = {**choices, "agent": agents_by_kind(choices)[_action_kind(_root_, choices)]}
    swept = hydra.job.override_dirname if hydra.mode == RunMode.MULTIRUN else ""
    named = {key: env.get(key) for key in naming.KEY_IN_NAME.values() if not OmegaConf.is_missing(env, key)}
    folder = naming.folder(choices, named, time, swept, _root_.seed)
    return str(naming.unused(Path(str(_root_.outputs)), folder))
