"""Compilation of whole updates: targets, loss, gradients and optimiser as one graph (the key `compile`)."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch

from cfn.errors import UsageError
from cfn.nn.optim import Optimizer
from cfn.types import Array

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

MAX_SHAPES = 20
"""Maximum number of compiled versions of one function: one for each size of padded batches, and a few more."""

LARGE_BATCH = 2**20
"""Numbers in a batch from which convolutions on the CPU take nearly all the time of a padded update."""


def require_compiler(device: torch.device) -> None:
    """Compile a small function, so that a missing compiler is reported before the run begins."""
    torch.compiler.reset()  # what earlier runs of this process compiled counts towards MAX_SHAPES
    try:
        torch.compile(lambda x: x + 1)(torch.zeros(2, device=device))
    except Exception as error:  # compilers of different devices raise different errors
        reason = str(error).strip().splitlines()[0]
        sentence = f"compile=true: PyTorch cannot compile on this machine ({reason}): use compile=false"
        raise UsageError(sentence) from error


def compiled(
    function: Callable[P, R], name: str, device: torch.device, optimizer: Optimizer | None = None
) -> Callable[P, R]:
    """Return a function compiled as one graph for each shape of its arguments.

    The first call with a shape compiles, and logs its duration; PyTorch keeps compiled code on disk, where the other
    runs of a sweep find it. On CUDA, the graph is captured and replayed, which removes the latency of launching its
    kernels one by one.

    Args:
        function: Function of tensors. It may change tensors of its object in place.
        name: Name of the function in the log.
        device: Device of the tensors.
        optimizer: Optimiser whose step is part of the function, if it is one of `cfn.nn.optim`.
    """
    if optimizer is not None:
        optimizer.in_graph = True
    torch._dynamo.config.recompile_limit = MAX_SHAPES
    torch._dynamo.config.trace_autograd_ops = True  # gradients are part of the graph
    mode = "reduce-overhead" if device.type == "cuda" else "default"
    quick: Callable[P, R] = torch.compile(function, fullgraph=True, dynamic=False, mode=mode)
    seen: set[tuple[Any, ...]] = set()

    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        shapes = tuple(tensor.shape for tensor in arguments if isinstance(tensor, torch.Tensor))
        if shapes in seen:
            return quick(*arguments, **keywords)
        seen.add(shapes)
        start = time.perf_counter()
        result = quick(*arguments, **keywords)
        log.info(f"Compiled {name} in {time.perf_counter() - start:.0f} s.")
        return result

    return call


def padding_pays(name: str, numbers: int, device: torch.device) -> bool:
    """Return whether a compiled update of padded batches is faster; if not, log that it is left out.

    On the CPU, it is faster as long as a batch is small. Of large images, the convolutions are the same, compiled or
    not, and those of the padding are added.

    Args:
        name: Name of the update in the log.
        numbers: Numbers in a batch, such as pixels.
        device: Device of the update.
    """
    pays = device.type != "cpu" or numbers < LARGE_BATCH
    if not pays:
        log.info(f"{name} is not compiled: on the CPU, batches of large images take as long or longer then.")
    return pays


def padded(array: Array, maximum: int) -> Array:
    """Return rows padded with zeros to one of a few sizes: one graph for each instead of one for every number of rows.

    Args:
        array: Rows.
        maximum: Largest possible number of rows.
    """
    rows = padded_size(len(array), maximum) - len(array)
    return np.concatenate([array, np.zeros((rows, *array.shape[1:]), array.dtype)])


def unpadded(array: Array) -> Array:
    """Return the rows as they are: what updates that are not compiled use in place of `padded`."""
    return array


def padded_size(size: int, maximum: int) -> int:
    """Return the size to which a batch of varying size is padded.

    Args:
        size: Number of rows.
        maximum: Largest possible number of rows.
    """
    return next(allowed for allowed in padded_sizes(maximum) if allowed >= size)


def padded_sizes(maximum: int) -> Sequence[int]:
    """Return the sizes of padded batches: sixteenths of the largest."""
    return sorted({-(-maximum * part // 16) for part in range(1, 17)})
