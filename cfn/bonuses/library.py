"""Bonuses by the names and keys of the configs, for loops outside this package. Hydra is not needed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import yaml

from cfn import schema
from cfn.errors import BadInputError, UsageError

if TYPE_CHECKING:
    from cfn.bonuses.base import Bonus  # PyTorch is slow to import, and `from cfn import make_bonus` does without


def bonus_names() -> list[str]:
    """Return the names of all bonuses: those of the files in `conf/bonus`."""
    return sorted(path.stem for path in (schema.CONF / "bonus").glob("*.yaml"))


def make_bonus(
    name: str,
    observation_space: Any,
    action_space: gym.Space[Any] | None = None,
    *,
    num_envs: int = 1,
    seed: int = 0,
    device: str = "cpu",
    **keys: Any,
) -> "Bonus":
    """Return a bonus for observations of one environment.

    Keys that are not given have the defaults of the bonus's class, not those of an environment's config.

    Args:
        name: Name of the bonus, as in `cfn train bonus=NAME`.
        observation_space: Observations of one environment, such as `envs.single_observation_space`.
        action_space: Actions of one environment, for bonuses that learn from transitions.
        num_envs: Number of environments, for bonuses that remember episodes.
        seed: Seed of everything random.
        device: Device of the networks.
        **keys: Keys of the bonus, as in `cfn train bonus.KEY=VALUE`. A bonus that is part of another one is given
            by its name, or by its name and keys: `novelty={"name": "rnd", "lr": 0.001}`.

    Raises:
        ValueError: The name, a key, a value or the observation space does not fit.
    """
    if not isinstance(observation_space, gym.Space):
        kind = type(observation_space).__name__
        raise BadInputError(f"observation_space is {kind}, not a Gymnasium space: pass env.observation_space")
    offered: dict[str, Any] = {"observation_space": observation_space, "action_space": action_space}
    offered |= {"seed": seed, "device": device, "num_envs": num_envs}
    try:
        component = schema.component("bonus", name, _with_target(name, keys), (*offered, "frames", "steps"))
        bonus: Bonus = component.build(**offered)
    except UsageError as error:
        raise error if isinstance(error, ValueError) else BadInputError(str(error)) from error
    return bonus


def _with_target(name: str, keys: dict[str, Any]) -> dict[str, Any]:
    """Return the keys with the class of the bonus, and with the classes of the bonuses that are part of it."""
    if name not in (names := bonus_names()):
        raise BadInputError(f"there is no bonus {name!r}: the bonuses are {', '.join(names)}")
    values = yaml.safe_load((schema.CONF / "bonus" / f"{name}.yaml").read_text(encoding="utf-8"))
    extended = [entry for entry in values.get("defaults", []) if isinstance(entry, str) and entry != "_self_"]
    if extended:  # a bonus such as cfn_tuned: its file lists only the changed keys
        own = {key: value for key, value in values.items() if key != "defaults"}
        return _with_target(extended[0], own | keys)
    complete = {"_target_": values["_target_"], **keys}
    for entry in values.get("defaults", []):
        for path, option in entry.items() if isinstance(entry, dict) else ():
            part = path.partition("@")[2]
            given: Any = keys.get(part, option)
            if not isinstance(given, str | Mapping):
                kind = type(given).__name__
                raise BadInputError(f'{part} is {kind}: give the name of a bonus, or {{"name": ..., KEY: VALUE}}')
            chosen = {"name": given} if isinstance(given, str) else {"name": option, **given}
            own = values.get(part, {})  # keys of the part that the file of the whole sets
            complete[part] = _with_target(chosen.pop("name"), own | chosen)
    return complete
