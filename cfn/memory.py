"""Whether a buffer will fit, asked before it is made: a run that would die of it after days is refused at once."""

import logging
import os
from pathlib import Path

from cfn.errors import BadValueError

log = logging.getLogger(__name__)

LARGE = 2**30
"""Bytes of which a run says beforehand that it may come to need them."""
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def available() -> int | None:
    """Bytes that this process may still take: of the machine, and of its container or batch job; None if unknown."""
    limits = []
    if MEMINFO.exists():
        fields = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
        limits.append(int(fields["MemAvailable"].split()[0]) * 1024)
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:
        most, taken = ((CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        if most != "max":
            limits.append(int(most) - int(taken))
    except (OSError, ValueError):  # no such limit, or one of an older kind
        pass
    return min(limits, default=None)


def require(key: str, value: int, needed: int) -> None:
    """Refuse `key`=`value` if what it stands for can grow to more bytes than there are; if they are many, say so."""
    there = available()
    if there is not None and needed > there:
        raise BadValueError(
            key,
            f"{value:,} entries can grow to {needed:,} bytes ({needed / 2**30:,.1f} GB), and this process can have "
            f"{there:,} ({there / 2**30:,.1f} GB): lower {key}",
        )
    if needed >= LARGE:
        log.info(f"A replay buffer of {value:,} entries can grow to {needed / 2**30:,.1f} GB.")


def require_buffer(capacity: int, entry: int, frame: int, steps: int | None) -> None:
    """Refuse a replay buffer that could not be filled: all its entries, and a distinct frame for each step.

    Args:
        capacity: Entries.
        entry: Bytes of one, beside its frames.
        frame: Bytes of a frame.
        steps: How many will be taken at the most, if that is known.
    """
    require("capacity", capacity, capacity * entry + min(capacity, steps or capacity) * frame)
