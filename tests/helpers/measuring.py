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


class Clock:
    """Which part of a program takes how long: time counts for the innermost part that it is in."""

    def __init__(self):
        self.seconds = {}
        self._parts, self._since = [], 0.0

    def timed(self, part, function, within=None):
        """The function, as a part of the program; with `within`, only where it is called from that part."""

        def wrapper(*arguments, **keys):
            self._turn()
            self._parts.append(part if within is None or within in self._parts else self._parts[-1])
            try:
                return function(*arguments, **keys)
            finally:
                self._turn()
                self._parts.pop()

        return wrapper

    def _turn(self):
        now = time.perf_counter()
        if self._parts:
            self.seconds[self._parts[-1]] = self.seconds.get(self._parts[-1], 0.0) + now - self._since
        self._since = now

    def table(self):
        """The parts, the longest first, and their shares of all."""
        total = sum(self.seconds.values())
        parts = sorted(self.seconds.items(), key=lambda item: -item[1])
        return "\n".join(f"  {part:<32}{taken:8.2f} s{taken / total:8.1%}" for part, taken in parts)
