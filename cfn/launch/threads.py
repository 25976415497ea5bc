"""CPU threads of runs that share one machine: as many as there are cores for each."""

import os
from typing import Any

from cfn.errors import UsageError

LAUNCHER = "hydra/launcher"
"""Group of launchers in Hydra's choices."""


def threads_per_run(hydra: Any, runs: int) -> int | None:
    """Return the CPU threads that leave a core to every parallel run; None if runs do not share a machine.

    Args:
        hydra: Hydra's own config.
        runs: Number of runs to launch.
    """
    cores = len(os.sched_getaffinity(0))
    launcher = hydra.runtime.choices.get(LAUNCHER)
    if launcher == "joblib":
        return max(1, cores // max(1, min(runs, workers_of(hydra.launcher.n_jobs, cores))))
    if launcher == "slurm_local":
        return max(1, cores // max(1, runs))
    return None


def workers_of(n_jobs: Any, cores: int) -> int:
    """Return the number of joblib's workers: a negative number leaves out cores, -1 uses them all.

    Raises:
        UsageError: `hydra.launcher.n_jobs` is no number of runs.
    """
    if n_jobs is not None and (not isinstance(n_jobs, int) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise UsageError(f"hydra.launcher.n_jobs={n_jobs}: should be a number of runs, or -1 for one per core")
    return 1 if n_jobs is None else n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
