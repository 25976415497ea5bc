"""Outputs of a network that counts state-action pairs: a group of outputs for each discrete action."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from cfn.bonuses.visits import Visits
from cfn.errors import BadValueError
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
        self.actions = int(space.n) if pairs and isinstance(space, gym.spaces.Discrete) else 1

    def select(self, output: Tensor, actions: Tensor) -> Tensor:
        """Return the outputs of each row's action."""
        if not self.pairs:
            return output
        return output.view(len(output), self.actions, self.size)[torch.arange(len(output)), actions]

    def taken(self, visits: Visits | None, rows: int) -> Array:
        """Return the actions of visits; zeros if states are counted."""
        if not self.pairs:
            return np.zeros(rows, np.int64)
        (actions,) = (visits or Visits()).require("cfn", "actions")
        return np.asarray(actions, np.int64)
