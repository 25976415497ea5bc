"""Saved states of parts, and taking them over: of an optimiser only if it fits, for PyTorch does not look."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch


def save_parts(owner: object, names: Sequence[str]) -> dict[str, Any]:
    """The state of each part, by its name; the part `replay` is the attribute `_replay`."""
    return {name: getattr(owner, f"_{name}").state_dict() for name in names}


def load_parts(owner: object, names: Sequence[str], states: Mapping[str, Any]) -> None:
    """Each part takes over the state of its name, in this order."""
    for name in names:
        getattr(owner, f"_{name}").load_state_dict(states[name])


def load_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Take over an optimiser's state, whose moments must be of the shapes of what they belong to.

    A fused optimiser trusts them to be: it would read and write beyond those that are smaller.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, moments in state["state"].items():
        for name, moment in moments.items():
            shape = torch.Size() if name == "step" else parameters[index].shape
            if not isinstance(moment, torch.Tensor) or moment.shape != shape:
                raise ValueError(f"{name} of the optimiser's parameter {index} is not of the shape {tuple(shape)}")
    optimizer.load_state_dict(dict(state))
