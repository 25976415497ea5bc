"""RAM limits: a run whose replay buffers cannot fit is refused at its start, not killed after days."""

import contextlib
import contextvars
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from cfn.errors import BadValueError, UsageError

log = logging.getLogger(__name__)

LARGE = 2**30
"""Bytes from which a run announces the size of its buffers."""
MEMINFO = Path("/proc/meminfo")
OWN, CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
"""List of this process's control groups (containers and batch jobs have their own), and the folder of all groups."""
NEW_NAMES = ("memory.max", "memory.current", "inactive_file")
OLD_NAMES = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
"""Names in control groups of version 2 and 1: limit, usage, and the share of usage that is reclaimable file cache."""


_ignored = contextvars.ContextVar("ignored", default=False)


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Ignore this machine's limits: inside, buffers are only measured, for a run on another machine."""
    token = _ignored.set(True)
    try:
        yield
    finally:
        _ignored.reset(token)


def available() -> int | None:
    """Return the bytes that this process can still allocate on its machine and in its control groups, if known."""
    if _ignored.get():
        return None
    limits = list(_left_in_groups())
    if MEMINFO.exists():
        fields = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
        limits.append(int(fields["MemAvailable"].split()[0]) * 1024)
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)


def _left_in_groups() -> Iterator[int]:
    """Yield the bytes left in the process's control group and in each parent group that has a limit."""
    for line in OWN.read_text().splitlines() if OWN.exists() else ():
        _, kinds, group = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        root, names = (CGROUPS / "memory", OLD_NAMES) if kinds else (CGROUPS, NEW_NAMES)
        folder = root / group.lstrip("/")
        for place in (folder, *folder.parents):
            if place.is_relative_to(root) and (left := _left(place, *names)) is not None:
                yield left


def _left(group: Path, limit: str, taken: str, old_files: str) -> int | None:
    """Return the bytes left in one group, counting reclaimable file cache as free; None if it has no limit."""
    try:
        left = int((group / limit).read_text()) - int((group / taken).read_text())
    except (OSError, ValueError):  # no such group, or "max"
        return None
    try:
        counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return left + int(counts[old_files])
    except (OSError, ValueError, KeyError):
        return left


def require(key: str, value: int, needed: int) -> None:
    """Raise `BadValueError` for `key` if its buffer can grow to more bytes than are available."""
    there = available()
    if there is not None and needed > there:
        raise BadValueError(
            key,
            f"{value:,} entries can grow to {needed:,} bytes ({_gib(needed)}), but this process can allocate "
            f"only {there:,} ({_gib(there)}): lower {key}",
        )


def require_together(needed: Mapping[str, int]) -> None:
    """Raise `UsageError` if buffers that fit one by one do not fit together; `needed` has bytes by key."""
    there, total = available(), sum(needed.values())
    if there is not None and total > there:
        parts = " and ".join(f"{key} ({_gib(bytes_)})" for key, bytes_ in needed.items() if bytes_)
        raise UsageError(
            f"{parts} together can grow beyond the {_gib(there)} that this process can allocate: lower one"
        )


def announce(needed: int) -> None:
    """Log the size that the replay buffers can grow to, if it is large."""
    if needed >= LARGE:
        log.info(f"The replay buffers can grow to {_gib(needed)}.")


def require_buffer(capacity: int, entry: int, frame: int, steps: int | None) -> int:
    """Check that a replay buffer fits when it is full, with one distinct frame per entry.

    A run shorter than the capacity fills only a part. The rest is reserved address space and takes no memory.

    Args:
        capacity: Number of entries.
        entry: Bytes per entry, without its frames.
        frame: Bytes per frame.
        steps: Maximum number of steps of the run, if known.

    Returns:
        Bytes that the buffer can grow to.
    """
    needed = min(capacity, steps or capacity) * (entry + frame)
    require("capacity", capacity, needed)
    try:
        np.empty(capacity * entry, np.uint8)
    except (MemoryError, ValueError, OverflowError) as error:
        most = capacity * (entry + frame)
        sentence = f"{capacity:,} entries can grow to {most:,} bytes, more than the operating system can reserve"
        raise BadValueError("capacity", f"{sentence}: lower capacity") from error
    return needed


def _gib(number: int) -> str:
    """Return a number of bytes in the unit of batch systems and `free -h`: 1 GiB is 2^30 bytes."""
    return f"{number / 2**30:,.1f} GiB"
