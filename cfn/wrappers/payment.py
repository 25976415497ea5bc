"""The core of all wrappers: a bonus that pays for the steps of several environments and learns at its own period."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, ref

import gymnasium as gym
import torch

from cfn.bonuses.base import Bonus
from cfn.bonuses.visits import Visits
from cfn.checkpoints.store import Checkpoints
from cfn.envs.checks import as_state
from cfn.errors import BadInputError, WrongTypeError
from cfn.types import Array, Metrics, State

Combine = Callable[[Array, Array], Array]
"""Function from extrinsic and intrinsic rewards to the rewards that an agent learns from."""


class Payment:
    """Pays a bonus for the steps of several environments, and updates it every `bonus.update_period` steps.

    Steps are summed over environments, as in `cfn train`.

    Args:
        bonus: Bonus of all environments. No other wrapper may use it.
        space: Observations of one environment.
        key: Entry of Dict observations that the bonus sees; None for other observations.
    """

    def __init__(self, bonus: Bonus, space: gym.Space[Any], key: str | None = None) -> None:
        if not isinstance(bonus, Bonus):
            raise WrongTypeError(f"bonus is {type(bonus).__name__}, not a Bonus: use make_bonus(name, space)")
        self.bonus, self.key = bonus, key
        self.space = _chosen_space(space, key)
        self.steps = 0
        self._process = os.getpid()
        self._sums: dict[str, float] = {}
        self._numbers: dict[str, int] = {}
        _claim(bonus, self)

    def visible(self, observations: Any) -> Any:
        """Return what the bonus sees of observations: their chosen entry, or all of them."""
        return observations if self.key is None else observations[self.key]

    def pay(self, observations: Array, visits: Visits) -> Array:
        """Count one visit per row, update the bonus if that is due, and return the intrinsic rewards."""
        if os.getpid() != self._process:
            raise BadInputError(
                "the bonus was copied into another process, where it would count only the visits of that process: wrap "
                "the batch of all environments in the main process"
            )
        period = self.bonus.update_period
        with torch.inference_mode(False), torch.enable_grad():  # collectors step environments without gradients
            rewards = self.bonus.observe(observations, visits)
            before, self.steps = self.steps, self.steps + len(observations)
            for _ in range(self.steps // period - before // period):
                self._measure(self.bonus.update())
        self._measure({"bonus/reward": float(rewards.mean())})
        return rewards

    def take_metrics(self) -> Metrics:
        """Return the means of `bonus/reward` and of the bonus's own metrics since the last call."""
        means = {name: total / self._numbers[name] for name, total in self._sums.items()}
        self._sums, self._numbers = {}, {}
        return {name: float(mean) for name, mean in means.items()}

    def _measure(self, metrics: Any) -> None:
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._numbers[name] = self._numbers.get(name, 0) + 1

    def release(self) -> None:
        """Let another wrapper use the bonus."""
        _OWNERS.pop(self.bonus, None)

    def save(self, folder: str | Path) -> None:
        """Write the bonus and its steps to a folder, in place of what was saved there. No pickle is written."""
        Checkpoints(Path(folder), keep=2).save(self.steps, {"bonus": self.state_dict()})
        Checkpoints(Path(folder), keep=1).remove_after(self.steps)  # the former one may have had more steps

    def load(self, folder: str | Path) -> None:
        """Restore what `save` has written; the bonus must have been made with the same arguments."""
        saved = Checkpoints(Path(folder))
        if (checkpoint := saved.latest()) is None:
            if saved.paths:
                raise BadInputError(f"the bonus saved in {folder} is damaged")
            raise BadInputError(f"{folder} has no saved bonus: name the folder that save() has written")
        try:
            self.load_state_dict(checkpoint.read("bonus"))
        except (ValueError, TypeError, LookupError, RuntimeError) as error:  # RuntimeError: weights of other shapes
            reason = " ".join(str(error).split())
            name = type(self.bonus).__name__
            raise BadInputError(
                f"the bonus saved in {folder} does not fit this {name}: make it with the same name, space and keys "
                f"({type(error).__name__}: {reason[:200]})"
            ) from error

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps, "bonus": self.bonus.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps = state["steps"]
        self.bonus.load_state_dict(state["bonus"])


_OWNERS: "WeakKeyDictionary[Bonus, ref[Payment]]" = WeakKeyDictionary()
"""Which wrapper uses a bonus; an entry goes away with either of them."""


def _claim(bonus: Bonus, owner: Payment) -> None:
    if (known := _OWNERS.get(bonus)) is not None and known() is not None:
        raise BadInputError(
            "this bonus is used by another wrapper, and two would mix their visits: wrap environments for evaluation "
            "without a bonus, close the other wrapper, or make a second bonus"
        )
    _OWNERS[bonus] = ref(owner)


def _chosen_space(space: gym.Space[Any], key: str | None) -> gym.Space[Any]:
    """Return the space that a bonus sees; raise `BadInputError` if the key does not fit."""
    if not isinstance(space, gym.spaces.Dict):
        if key is not None:
            raise BadInputError(f"key={key!r}: observations of {space} have no named entries: leave key out")
        return space
    if key not in space.spaces:
        names = ", ".join(space.spaces)
        problem = "observations have several entries" if key is None else f"key={key!r} is none of their entries"
        raise BadInputError(f"{problem}: choose the one that the bonus sees with key=..., one of {names}")
    return space[key]


def states_or_none(states: Sequence[Any] | None) -> list[State] | None:
    """Return true states as tuples of integers; None if one is missing."""
    if states is None or any(state is None for state in states):
        return None
    return [as_state(state) for state in states]
