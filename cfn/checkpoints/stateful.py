"""The `state_dict` contract: how every part of a run gives its state and restores it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from cfn.types import Array


class Stateful(Protocol):
    """A part of a run whose state can be saved and restored.

    A run that is saved, restored and continued gives, on a CPU, bit for bit the numbers of a run that was never
    interrupted. Methods named `state_dict` and `load_state_dict` anywhere in this package keep this contract, so they
    have a docstring only where they add to it.
    """

    def state_dict(self) -> Any:
        """Return everything that the part needs to continue as if it had never stopped.

        The state consists of None, booleans, numbers, strings, tuples, lists, dictionaries, NumPy arrays of numbers,
        tensors, and `Sealed` arrays. Arrays may be views: the caller uses them before the part changes again.
        """

    def load_state_dict(self, state: Any) -> None:
        """Restore a state of a part that was constructed with the same arguments.

        The state may come from a damaged or foreign checkpoint. Raise `ValueError`, `TypeError` or `LookupError` if it
        does not fit; never let it cause memory access outside the part's own arrays.
        """


def without_state(part: Stateful, base: type[Any]) -> str | None:
    """Return the name of a class that only inherits `state_dict` from its base class, so that its state is not saved.

    Args:
        part: Part of a run. The parts that it is made of itself, in its attribute `parts`, are looked at, too.
        base: Base class.
    """
    if type(part).state_dict is base.state_dict:
        return type(part).__name__
    inner = getattr(part, "parts", {}).values()
    return next((name for each in inner if (name := without_state(each, base))), None)


class Sealed:
    """An array that will never change again. A checkpoint that has stored it once does not read it again.

    Args:
        data: Array.
    """

    def __init__(self, data: Array) -> None:
        self.data = data


def save_parts(owner: object, names: Sequence[str]) -> dict[str, Any]:
    """Return the states of the attributes `_<name>` of an object, by name."""
    return {name: getattr(owner, f"_{name}").state_dict() for name in names}


def load_parts(owner: object, names: Sequence[str], states: Mapping[str, Any]) -> None:
    """Restore the states of the attributes `_<name>` of an object, in this order."""
    for name in names:
        getattr(owner, f"_{name}").load_state_dict(states[name])


def load_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Restore an optimiser's state, after checking that its moments have the shapes of their parameters.

    PyTorch does not check this, and a fused optimiser would read and write outside of smaller moments.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, moments in state["state"].items():
        for name, moment in moments.items():
            shape = torch.Size() if name == "step" else parameters[index].shape
            if not isinstance(moment, torch.Tensor) or moment.shape != shape:
                raise ValueError(f"{name} of optimiser parameter {index} does not have the shape {tuple(shape)}")
    optimizer.load_state_dict(dict(state))
