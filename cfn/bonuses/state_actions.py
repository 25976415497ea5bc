"""Outputs of a network that counts state-action pairs: a group of outputs for each discrete action."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from cfn.bonuses.visits import Visits
from cfn.errors import BadInputError, BadValueError
from cfn.types import Array


class ActionOutputs:
    """Selects the outputs that belong to the action of each visit. A bonus that counts states has one group for all.

    Args:
        pairs: Whether state-action pairs are counted.
        space: Actions; they must be discrete if pairs are counted.
        size: Outputs per action.
    """

    def __init__(self, pairs: bool, space: gym.Space[Any] | None, size: int) -> None:
        if pairs and not isinstance(space, gym.spaces.Discrete):
            raise BadValueError("of", f"state_action needs discrete actions, not {space}: set of=state")
        self.pairs, self.size = pairs, size
        self.actions, self._first = 1, 0
        if pairs and isinstance(space, gym.spaces.Discrete):
            self.actions, self._first = int(space.n), int(space.start)

    def select(self, output: Tensor, actions: Tensor) -> Tensor:
        """Return the outputs of each row's action."""
        if not self.pairs:
            return output
        return output.view(len(output), self.actions, self.size)[torch.arange(len(output)), actions]

    def taken(self, visits: Visits | None, rows: int) -> Array:
        """Return the actions of visits as numbers from 0 on; zeros if states are counted."""
        if not self.pairs:
            return np.zeros(rows, np.int64)
        (actions,) = (visits or Visits()).require("cfn", "actions")
        return self.numbers(actions)

    def numbers(self, actions: Any) -> Array:
        """Return actions as numbers from 0 on; raise `BadInputError` for an action that the space does not have."""
        return action_numbers(np.asarray(actions, np.int64), self._first, self.actions)


def action_numbers(actions: Array, first: int, count: int) -> Array:
    """Return discrete actions as numbers from 0 on; raise `BadInputError` for an action outside of the space.

    Args:
        actions: Actions.
        first: Smallest action.
        count: Number of actions.
    """
    numbers: Array = actions.astype(np.int64) - first
    if ((numbers < 0) | (numbers >= count)).any():
        raise BadInputError(f"actions {actions.tolist()} are not all between {first} and {first + count - 1}")
    return numbers
