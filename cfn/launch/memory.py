"""Main memory of the runs of a sweep, known before they are submitted."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from cfn.config import Config
from cfn.errors import UsageError
from cfn.nn import memory_limits

AUTO = "auto"
BEYOND_BUFFERS = 4
"""GiB for everything but replay buffers: Python and its libraries, networks, true counts, pictures."""


def gib_to_request(asked: Any, configs: Iterable[Config]) -> float:
    """Return the GiB to request for each run: what was asked for, or what the largest run needs.

    Args:
        asked: Value of `hydra.launcher.mem_gb`: a number, or `auto`.
        configs: Configs of the runs; those that differ only in the seed are asked once.
    """
    needed, seen = 0, []
    for config in configs:
        like = dataclasses.replace(config, seed=0, device="cpu", compile=False, bf16=False)
        if like not in seen:
            seen.append(like)
            needed = max(needed, buffer_bytes(like))
    gib = needed / 2**30
    if asked == AUTO:
        return math.ceil(gib) + BEYOND_BUFFERS
    try:
        available = float(asked)
    except (TypeError, ValueError):
        raise UsageError(f"hydra.launcher.mem_gb={asked}: should be a number of GiB, or {AUTO}") from None
    if available <= gib:
        sentence = f"the replay buffers of a run can grow to {gib:,.1f} GiB"
        raise UsageError(f"hydra.launcher.mem_gb={asked}: {sentence}: ask for more, or use {AUTO}")
    return available


def buffer_bytes(config: Config) -> int:
    """Return the bytes that the replay buffers of a run can grow to, whatever this machine has."""
    from cfn.training.loop import Training  # PyTorch is slow to import

    try:
        with memory_limits.ignored():
            training = Training(config)
    except UsageError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        hint = "name it with hydra.launcher.mem_gb=N"
        raise UsageError(f"the memory of a run cannot be determined on this machine ({reason}): {hint}") from error
    training.envs.close()
    training.evaluate.close()
    return training.agent.full_bytes + training.bonus.full_bytes
