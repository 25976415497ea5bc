"""Bonuses by the names and keys of the configs, for loops outside this package. Hydra is not needed."""

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import yaml

from cfn import schema
from cfn.errors import BadInputError, UsageError

if TYPE_CHECKING:
    from cfn.bonuses.base import Bonus  # imports PyTorch, which takes a second: `from cfn import make_bonus` does not


def bonus_names() -> list[str]:
    """Return the names of all bonuses: those of the files in `conf/bonus`."""
    return sorted(path.stem for path in (schema.CONF / "bonus").glob("*.yaml"))


def make_bonus(name: str, observation_space: Any, *, seed: int = 0, device: str = "cpu", **keys: Any) -> "Bonus":
    """Return a bonus for observations of one environment.

    Keys that are not given have the defaults of the bonus's class, not those of an environment's config.

    Args:
        name: Name of the bonus, as in `cfn train bonus=NAME`.
        observation_space: Observations of one environment, such as `envs.single_observation_space`.
        seed: Seed of everything random.
        device: Device of the networks.
        **keys: Keys of the bonus, as in `cfn train bonus.KEY=VALUE`.

    Raises:
        ValueError: The name, a key, a value or the observation space does not fit.
    """
    if name not in (names := bonus_names()):
        raise BadInputError(f"there is no bonus {name!r}: the bonuses are {', '.join(names)}")
    if not isinstance(observation_space, gym.Space):
        kind = type(observation_space).__name__
        raise BadInputError(f"observation_space is {kind}, not a Gymnasium space: pass env.observation_space")
    values = yaml.safe_load((schema.CONF / "bonus" / f"{name}.yaml").read_text(encoding="utf-8"))
    offered = {"observation_space": observation_space, "seed": seed, "device": device}
    try:
        bonus: Bonus = schema.component(
            "bonus", name, {"_target_": values["_target_"], **keys}, (*offered, "frames", "steps")
        ).build(**offered)
    except UsageError as error:
        raise error if isinstance(error, ValueError) else BadInputError(str(error)) from error
    return bonus
