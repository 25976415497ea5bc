"""Timing things beside each other."""

import statistics
import time


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
