"""Entry point of a Slurm job, which defers the cluster's warning signal until the job can obey it.

`python -m cfn.launch.slurm_entry -u -m MODULE ARGUMENTS` runs a module like `python -u -m MODULE ARGUMENTS`. Before it
imports anything, it blocks the signals whose default action would end the process. They stay pending, and
`SlurmLauncher` unblocks them when submitit's handlers are in place: a job that is preempted while it imports PyTorch is
requeued.
"""

import signal
import sys

SIGNALS = (signal.SIGUSR2, signal.SIGTERM)


def main() -> None:
    """Block the signals and run the module."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    import runpy  # slow to import: after the signals are blocked

    module = sys.argv.index("-m") + 1
    name, sys.argv = sys.argv[module], sys.argv[module:]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
