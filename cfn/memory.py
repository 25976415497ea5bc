"""Whether a buffer will fit, asked before it is made: a run that would die of it after days is refused at once."""

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from cfn.errors import BadValueError, UsageError

log = logging.getLogger(__name__)

LARGE = 2**30
"""Bytes of which a run says beforehand that it may come to need them."""
MEMINFO = Path("/proc/meminfo")
OWN, CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
"""Which control groups this process is in (containers and batch jobs have theirs), and where groups are."""
NEW_NAMES = ("memory.max", "memory.current", "inactive_file")
OLD_NAMES = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
"""Of a group's files, in version 2 and 1: the limit, what is taken, and how much of that are files read long ago."""


def available() -> int | None:
    """Bytes that this process may still take: of the machine, and of its container or batch job; None if unknown."""
    limits = list(_left_in_groups())
    if MEMINFO.exists():
        fields = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
        limits.append(int(fields["MemAvailable"].split()[0]) * 1024)
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)


def _left_in_groups() -> Iterator[int]:
    """What is left in the process's control group and in each of those around it, where there is a limit."""
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
    """What is left in one group, with files that the system would forget for it; None if there is no limit."""
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
    """Refuse `key`=`value` if what it stands for can grow to more bytes than there are."""
    there = available()
    if there is not None and needed > there:
        raise BadValueError(
            key,
            f"{value:,} entries can grow to {needed:,} bytes ({needed / 2**30:,.1f} GB), and this process can have "
            f"{there:,} ({there / 2**30:,.1f} GB): lower {key}",
        )


def require_together(needed: Mapping[str, int]) -> None:
    """Refuse what fits one by one, but not together; `needed` has bytes by key."""
    there, total = available(), sum(needed.values())
    if there is not None and total > there:
        parts = " and ".join(f"{key} ({bytes_ / 2**30:,.1f} GB)" for key, bytes_ in needed.items() if bytes_)
        raise UsageError(f"{parts} together can grow beyond the {there / 2**30:,.1f} GB of this process: lower one")


def announce(needed: int) -> None:
    """Say at the start what a run may come to need, if it is much."""
    if needed >= LARGE:
        log.info(f"The replay buffers can grow to {needed / 2**30:,.1f} GB.")


def require_buffer(capacity: int, entry: int, frame: int, steps: int | None) -> int:
    """Refuse a replay buffer that could not be filled: an entry and a distinct frame for each step.

    What will not be filled is only reserved: memory that nobody has written to takes none.

    Args:
        capacity: Entries.
        entry: Bytes of one, beside its frames.
        frame: Bytes of a frame.
        steps: How many will be taken at the most, if that is known.

    Returns:
        The bytes that it can grow to.
    """
    needed = min(capacity, steps or capacity) * (entry + frame)
    require("capacity", capacity, needed)
    try:
        np.empty(capacity * entry, np.uint8)
    except (MemoryError, ValueError, OverflowError) as error:
        most = capacity * (entry + frame)
        sentence = f"{capacity:,} entries can grow to {most:,} bytes, more than the system lets anybody have"
        raise BadValueError("capacity", f"{sentence}: lower capacity") from error
    return needed
