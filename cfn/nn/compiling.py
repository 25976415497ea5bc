"""Compilation of whole updates: targets, loss, gradients and optimiser as one graph (the key `compile`)."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import torch

from cfn.errors import UsageError

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

MAX_SHAPES = 16
"""Maximum number of compiled versions of one function."""


def require_compiler(device: torch.device) -> None:
    """Compile a small function, so that a missing compiler is reported before the run begins."""
    try:
        torch.compile(lambda x: x + 1)(torch.zeros(2, device=device))
    except Exception as error:  # compilers of different devices raise different errors
        reason = str(error).strip().splitlines()[0]
        sentence = f"compile=true: PyTorch cannot compile on this machine ({reason}): use compile=false"
        raise UsageError(sentence) from error


def compiled(function: Callable[P, R], name: str, device: torch.device) -> Callable[P, R]:
    """Return a function compiled as one graph for each shape of its arguments.

    The first call with a shape compiles, and logs how long that took; PyTorch keeps compiled code on disk, where the
    other runs of a sweep find it. On CUDA, the graph is captured and replayed, which removes the latency of launching
    its kernels one by one.

    Args:
        function: Function of tensors. It may change tensors of its object in place.
        name: What is compiled, for the log.
        device: Device of the tensors.
    """
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


def padded_size(size: int, maximum: int) -> int:
    """Return the size to which a batch of varying size is padded: a few sizes instead of one graph for each.

    Args:
        size: Number of rows.
        maximum: Largest possible number of rows.
    """
    return next(allowed for allowed in padded_sizes(maximum) if allowed >= size)


def padded_sizes(maximum: int) -> Sequence[int]:
    """Return the sizes of padded batches: eighths of the largest."""
    return sorted({-(-maximum * part // 8) for part in range(1, 9)})
