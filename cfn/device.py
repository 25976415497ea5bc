"""Where and how PyTorch computes: the device, how batches get to it, and what makes networks faster there.

A GPU works while the program goes on, and waits are what slows it down. So batches go to it through pinned memory,
without waiting for the copy; the next batch is drawn while it is at work on this one (`Prefetcher`); and what an
update measured stays there until it is logged (`number`). On the CPU all of this is left out, and changes no number.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from cfn.errors import UsageError

DEFAULT_THREADS = torch.get_num_threads()
"""CPU threads that PyTorch takes by itself."""

VARIANTS = 32
"""Of one compiled network at the most: it acts, learns and is evaluated, each with batches of its own sizes."""

Measured = Mapping[str, float | Tensor]
"""Metrics of an update, of which some may still be on the device."""

Batch = TypeVar("Batch", bound=tuple[Any, ...])


def choose(device: str) -> torch.device:
    """The device that a config names; `auto` takes a GPU if there is one."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        device = next(name for name, there in available.items() if there)
    if not available[device]:
        usable = " or ".join(f"device={name}" for name in ("auto", *(n for n, there in available.items() if there)))
        raise UsageError(f"device={device}: PyTorch finds no such device on this machine: use {usable}")
    return torch.device(device)


def asynchronous(device: torch.device) -> bool:
    """Whether the device works while the program goes on, so that asking it for a number means waiting for it."""
    return device.type != "cpu"


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the CPU's on its way to the device.

    To CUDA by way of pinned memory, which PyTorch keeps and uses again once the copy is done. A plain copy would wait
    until all that the device was told before is done.
    """
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def number(tensor: Tensor) -> float | Tensor:
    """One number, such as a loss, to be logged; on a device it stays there until then."""
    tensor = tensor.detach()
    return tensor if asynchronous(tensor.device) else float(tensor)


class Prefetcher(Generic[Batch]):
    """Batches to learn from, the next one drawn and decompressed while the device is at work on this one.

    On the CPU, which cannot do both, a batch is drawn when it is asked for. Elsewhere batch k + 1 is drawn in update
    k, after the device was told all that is to be done and before the priorities that come of it are waited for. So it
    differs from the plain order's in that the priorities of batch k are as they were before update k, and that
    entries added between the two updates are not drawn yet; and where one generator also draws other things, such as
    coins, the order in which it does is another. What was drawn is learned from, whatever becomes of its entries, and
    is part of the state, so a resumed run learns from the same.

    Args:
        draw: Draws a batch, a named tuple, whose fields are what is saved.
        again: Makes the batch of its saved fields, or refuses them.
        device: Where it is learned from.
    """

    def __init__(self, draw: Callable[[], Batch], again: Callable[..., Batch], device: torch.device) -> None:
        self._draw, self._again, self._ahead = draw, again, asynchronous(device)
        self._next: Batch | None = None

    def take(self) -> Batch:
        """The batch to learn from now."""
        batch, self._next = self._next, None
        return self._draw() if batch is None else batch

    def prepare(self) -> None:
        """The device is at work: draw the next batch meanwhile."""
        if self._ahead:
            self._next = self._draw()

    def state_dict(self) -> list[Any]:
        """The fields of what was drawn and not yet learned from; none if there is no such batch."""
        return list(self._next or ())

    def load_state_dict(self, state: list[Any]) -> None:
        """Take it over."""
        self._next = self._again(*state) if state else None


def speed_up(networks: tuple[nn.Module, ...], device: torch.device, compile: bool, bf16: bool) -> None:
    """Let networks compute as `compile` and `bf16` ask, in place: their parameters and their names stay the same.

    Args:
        networks: Those that learn, and those that follow them.
        device: Where they are.
        compile: Whether `torch.compile` makes kernels for them.
        bf16: Whether what suits it is computed in bfloat16 on the way forward. Parameters, outputs, losses and
            optimisers keep single precision.
    """
    if bf16 and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise UsageError("bf16=true: this GPU does not compute in bfloat16: use bf16=false")
    if compile and networks:
        _try_compiling(device)
    for net in networks:
        if bf16:
            net.forward = partial(_in_bf16, net.forward, device)
        if compile:  # not `net.compile()`, which takes a sequence of layers apart
            net.forward = torch.compile(net.forward)


def _in_bf16(forward: Callable[..., Any], device: torch.device, *inputs: Tensor) -> Any:
    with torch.autocast(device.type, torch.bfloat16):
        outputs = forward(*inputs)
    return tuple(output.float() for output in outputs) if isinstance(outputs, tuple) else outputs.float()


def _try_compiling(device: torch.device) -> None:
    """Compile something small: what is missing, a compiler for instance, is told before the run begins."""
    try:
        torch._dynamo.config.recompile_limit = VARIANTS
        torch.compile(lambda x: x + 1)(torch.zeros(2, device=device))
    except Exception as error:  # whatever the compilers of all devices may raise
        reason = str(error).strip().splitlines()[0]
        sentence = f"compile=true: PyTorch cannot compile on this machine ({reason}): use compile=false"
        raise UsageError(sentence) from error
