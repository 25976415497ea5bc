"""The device that PyTorch computes on: its choice, its threads, transfers to it, and bfloat16.

A GPU works asynchronously, and every wait for it costs time. So batches are copied through pinned memory without
waiting (`send`), the next batch is sampled while the device works (`prefetch.py`), results are read with one wait
(`fetch`), and losses stay on the device until they are logged (`number`). On a CPU none of this applies, and no number
changes.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from cfn.errors import UsageError
from cfn.types import Array

DEFAULT_THREADS = torch.get_num_threads()
"""Number of CPU threads that PyTorch uses by default."""

Measured = Mapping[str, float | Tensor]
"""Metrics of an update; tensors are still on the device."""


def choose(device: str) -> torch.device:
    """Return the device that a config names; `auto` prefers a GPU."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        device = next(name for name, there in available.items() if there)
    if not available[device]:
        usable = " or ".join(f"device={name}" for name in ("auto", *(n for n, there in available.items() if there)))
        raise UsageError(f"device={device}: PyTorch finds no such device on this machine: use {usable}")
    return torch.device(device)


def limit_threads(threads: int | None) -> None:
    """Use this many threads for PyTorch and for the matrices of NumPy and SciPy; None is PyTorch's default.

    NumPy would use all cores otherwise, and parallel runs would take them from each other.
    """
    torch.set_num_threads(threads or DEFAULT_THREADS)
    threadpool_limits(threads or DEFAULT_THREADS, user_api="blas")


def asynchronous(device: torch.device) -> bool:
    """Return whether the device works asynchronously, so that reading a number from it means waiting."""
    return device.type != "cpu"


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a CPU tensor to the device.

    Copies to CUDA go through pinned memory, which PyTorch caches: a plain copy would wait for all queued work.
    """
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def fetch(*tensors: Tensor) -> list[Array]:
    """Return tensors as arrays. The program waits for the device once, however many they are."""
    return fetch_later(*tensors)()


def fetch_later(*tensors: Tensor) -> Callable[[], list[Array]]:
    """Begin to copy tensors from the device, and return a function that waits for the copies and returns them.

    PyTorch copies to pinned memory here, so the program can continue meanwhile.
    """
    copies = [tensor.detach().to("cpu", non_blocking=True) for tensor in tensors]
    arrived = queue_end(tensors[0].device) if asynchronous(tensors[0].device) else None

    def arrays() -> list[Array]:
        if arrived is not None:
            arrived.synchronize()
        return [copy.numpy() for copy in copies]

    return arrays


def queue_end(device: torch.device) -> torch.Event:
    """Return an event that occurs when the device has done all work that is queued now."""
    event = torch.Event(device)
    event.record()
    return event


def number(tensor: Tensor) -> float | Tensor:
    """Return a scalar, such as a loss, for logging; on an asynchronous device it stays there as a tensor."""
    tensor = tensor.detach()
    return tensor if asynchronous(tensor.device) else float(tensor)


def use_bf16(networks: tuple[nn.Module, ...], device: torch.device) -> None:
    """Run suitable operations of the forward passes in bfloat16 (the key `bf16`), in place.

    Parameters, outputs, losses and optimisers stay in single precision.

    Args:
        networks: Trained networks and their target networks.
        device: Device of the networks.
    """
    if device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise UsageError("bf16=true: this GPU does not support bfloat16: use bf16=false")
    for net in networks:
        net.forward = partial(_in_bf16, net.forward, device)


def _in_bf16(forward: Callable[..., Any], device: torch.device, *inputs: Tensor) -> Any:
    with torch.autocast(device.type, torch.bfloat16):
        outputs = forward(*inputs)
    return tuple(output.float() for output in outputs) if isinstance(outputs, tuple) else outputs.float()
