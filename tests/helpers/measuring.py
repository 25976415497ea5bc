"""Timing things beside each other."""

import os
import statistics
import time
from pathlib import Path


def resident():
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def steps_per_second(runs, steps, repeats, warm_up):
    """The median of each, by name; they take turns, so that a slow moment falls on all."""
    for run in runs.values():
        run(warm_up)
    rates = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run(steps)
            rates[name].append(steps / (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in rates.items()}


def told(rates):
    """The rates in words."""
    return ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items())
