"""Main memory that the runs of a sweep need, computed before they are submitted."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from cfn.config import Config
from cfn.errors import UsageError
from cfn.nn import memory_limits

AUTO = "auto"
PER_WORKER = 0.25
"""GiB of a process that steps environments."""
BEYOND_BUFFERS = 4
"""GiB for everything but replay buffers: Python and its libraries, networks, true counts, pictures."""


def gib_to_request(asked: Any, configs: Iterable[Config]) -> float:
    """Return the GiB to request for each run: the number asked for, or the need of the largest run.

    Args:
        asked: Value of `hydra.launcher.mem_gb`: a number, or `auto`.
        configs: Configs of the runs; of those that differ only in the seed, one is measured.
    """
    needed, seen, workers = 0, [], 1
    for config in configs:
        workers = max(workers, config.env_workers)
        like = dataclasses.replace(config, seed=0, device="cpu", compile=False, bf16=False, env_workers=1)
        if like not in seen:
            seen.append(like)
            needed = max(needed, buffer_bytes(like))
    gib = needed / 2**30
    if asked == AUTO:
        return math.ceil(gib + PER_WORKER * (workers - 1)) + BEYOND_BUFFERS
    try:
        available = float(asked)
    except (TypeError, ValueError):
        raise UsageError(f"hydra.launcher.mem_gb={asked}: should be a number of GiB, or {AUTO}") from None
    if available <= gib:
        sentence = f"the replay buffers of a run can grow to {gib:,.1f} GiB"
        raise UsageError(f"hydra.launcher.mem_gb={asked}: {sentence}: ask for more, or use {AUTO}")
    return available


def buffer_bytes(config: Config) -> int:
    """Return the bytes that the replay buffers of a run can grow to, even if this machine has less."""
    from cfn.training.loop import Training  # PyTorch is slow to import

    try:
        with memory_limits.ignored():
            training = Training(config)
    except UsageError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        hint = "set hydra.launcher.mem_gb=N"
        raise UsageError(f"the memory of a run cannot be determined on this machine ({reason}): {hint}") from error
    training.close()
    return training.agent.full_bytes + training.bonus.full_bytes
