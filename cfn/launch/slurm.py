"""The launchers `hydra/launcher=slurm` and `slurm_local`: a sweep as a Slurm job array, through submitit.

A job that Slurm preempts or stops at its time limit first receives a signal. The training loop finishes its step and
writes a checkpoint; then submitit requeues the job, and the restarted job continues the run in its folder.
"""

import contextlib
import io
import logging
import shlex
import shutil
import signal
import subprocess
import sys
import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from hydra.core.utils import JobReturn, JobStatus
from hydra_plugins.hydra_submitit_launcher import submitit_launcher
from hydra_plugins.hydra_submitit_launcher.config import BaseQueueConf
from omegaconf import OmegaConf

from cfn.config import Config
from cfn.errors import UsageError
from cfn.launch import slurm_entry
from cfn.launch.batch import is_disk_full, refusal, requeue_if_killed
from cfn.launch.job_config import config_of_job, folder_of_job
from cfn.launch.memory_request import gib_to_request
from cfn.launch.planning import report_failure
from cfn.launch.queue import Queue, queued_runs, remember, submitting
from cfn.launch.resuming import resume_command
from cfn.runs.folder import as_typed
from cfn.runs.layout import SweepLayout
from cfn.runs.sweeps import PlannedRun
from cfn.training.signals import StoppedError, StopRequest

POLL_SECONDS = 1.0
"""Seconds between two searches for results."""
CANCELLED = "its job was cancelled"
ENDED_EARLY = "its job ended without a result (cancelled, killed, or its node failed)"
STILL_RUNNING = ("RUNNING", "SIGNALING")
"""States of a job that Slurm has not ended. It is SIGNALING until Slurm knows that its signal has arrived."""


SMALLEST = {
    **dict.fromkeys(("timeout_min", "cpus_per_task", "nodes", "tasks_per_node", "array_parallelism"), 1),
    **dict.fromkeys(("gpus_per_node", "signal_delay_s", "max_num_timeout", "max_restarts_if_killed"), 0),
}
"""Keys that are whole numbers, with their smallest values."""


class SubmititLauncher(submitit_launcher.BaseSubmititLauncher):  # type: ignore[misc]  # has no types
    """Submits runs, waits for them and returns their results."""

    _OWN_KEYS: ClassVar[frozenset[str]] = frozenset({"submitit_folder", "max_num_timeout", "max_restarts_if_killed"})

    def __init__(self, **params: Any) -> None:
        for key, least in SMALLEST.items():
            value = params.get(key)
            if value is not None and (type(value) is not int or value < least):
                raise UsageError(f"hydra.launcher.{key}={value}: should be a whole number of at least {least}")
        super().__init__(**params)

    def log_to(self, folder: Path) -> None:
        """Keep logs and job files in the folder of the sweep's jobs, unless the user has named another."""
        self._jobs_folder = folder.absolute()
        if self.params.get("submitit_folder") is None:
            self.params["submitit_folder"] = str(folder / "%j")

    def __call__(self, *arguments: Any) -> JobReturn:
        """Run one job, in its own process; requeue it if a signal stopped it."""
        # The root logger writes to the run folder, which a refused run leaves empty and removes.
        logging.getLogger("submitit").propagate = False
        try:
            # Until the run trains, signals wait. submitit's handler would raise SystemExit anywhere, even inside an
            # environment that replays its episode, where it looks like a fault of the environment.
            with StopRequest():
                signal.pthread_sigmask(signal.SIG_UNBLOCK, slurm_entry.SIGNALS)
                done: JobReturn = super().__call__(*arguments)
            return done
        except StoppedError as stopped:
            if stopped.code == 128 + signal.SIGUSR2 or self._is_preempted():
                signal.raise_signal(signal.SIGUSR2)  # submitit's handler requeues the job and exits
            raise SystemExit(stopped.code) from None  # the job was cancelled, or Slurm itself requeues it

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        """Submit the runs and wait for them."""
        from hydra.core.singleton import Singleton

        executor = self._executor([list(overrides) for overrides in job_overrides])
        arguments = [
            (list(overrides), "hydra.sweep.dir", number, f"job_id_for_{number}", Singleton.get_state())
            for number, overrides in enumerate(job_overrides, start=initial_job_idx)
        ]
        jobs = self._submit(executor, arguments)
        try:
            return self._wait(jobs, job_overrides)
        except KeyboardInterrupt:
            self._leave([job for job in jobs if job is not None])
            raise

    def _executor(self, runs: list[list[str]]) -> Any:
        import submitit

        python = f"{shlex.quote(sys.executable)} -u -m {slurm_entry.__name__}"
        made = {f"{self._EXECUTOR}_python": python, f"{self._EXECUTOR}_max_num_timeout": self._max_num_timeout}
        executor = submitit.AutoExecutor(folder=self.params["submitit_folder"], cluster=self._EXECUTOR, **made)
        common = set(OmegaConf.structured(BaseQueueConf).keys())
        given = {key: value for key, value in self._parameters(runs).items() if value not in (None, {}, [])}
        executor.update_parameters(
            **{key if key in common else f"{self._EXECUTOR}_{key}": value for key, value in given.items()}
        )
        return executor

    def _parameters(self, runs: list[list[str]]) -> dict[str, Any]:
        """Return the parameters of submitit's executor."""
        del runs
        return {key: value for key, value in self.params.items() if key not in self._OWN_KEYS}

    @property
    def _max_num_timeout(self) -> int:
        return int(self.params.get("max_num_timeout", 1000))

    def _submit(self, executor: Any, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Submit the calls and return the job of each; None for a run that another command has submitted."""
        return list(executor.map_array(self, *zip(*arguments, strict=True)))

    def _wait(self, jobs: Sequence[Any], runs: Sequence[Sequence[str]]) -> list[JobReturn]:
        results = {n: JobReturn(status=JobStatus.COMPLETED) for n, job in enumerate(jobs) if job is None}
        while len(results) < len(jobs):
            ended = self._ended({job.job_id for number, job in enumerate(jobs) if number not in results})
            for number, job in enumerate(jobs):
                if number not in results and (job.paths.result_pickle.exists() or job.job_id in ended):
                    results[number] = self._result(job, runs[number])
            time.sleep(POLL_SECONDS)
        return [results[number] for number in range(len(jobs))]

    def _result(self, job: Any, overrides: Sequence[str]) -> JobReturn:
        """Return the result of an ended job, and report a failure."""
        folder = folder_of_job(overrides)
        own = [override for override in overrides if not override.startswith("hydra.")]
        reason = CANCELLED if PlannedRun(folder, ()).state == "stopped" else ENDED_EARLY
        if job.paths.result_pickle.exists():
            from submitit.core.utils import pickle_load

            outcome, result = pickle_load(job.paths.result_pickle)
            if outcome == "success":
                done: JobReturn = result
                if done.status == JobStatus.FAILED:
                    from cfn.launch.sweeper import Sweeper

                    report_failure(own, Sweeper.describe(done._return_value), folder)
                return done
            reason = str(result).strip().splitlines()[-1]
        elif is_disk_full(job.paths.stdout):
            sweep = as_typed(self._jobs_folder.parent)
            reason = f"its disk is full: free some space, then cfn resume {sweep} continues"
        report_failure(own, f"{reason}; its log: {as_typed(job.paths.stdout)}", folder)
        return JobReturn(overrides=own, status=JobStatus.FAILED, _return_value=UsageError(reason))

    @abstractmethod
    def _ended(self, ids: set[str]) -> set[str]:
        """Return the jobs that have ended, with or without a result."""

    def _is_preempted(self) -> bool:
        return False

    def _leave(self, jobs: Sequence[Any]) -> None:
        """Tell the user after Ctrl-C that the jobs continue; by default, nothing is printed."""


class SlurmLauncher(SubmititLauncher):
    """Runs of a sweep as a Slurm job array."""

    _EXECUTOR = "slurm"

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        if shutil.which("sbatch") is None:
            elsewhere = "use hydra/launcher=joblib or hydra/launcher=slurm_local on this machine"
            raise UsageError(f"hydra/launcher=slurm: there is no Slurm here (no command sbatch): {elsewhere}")
        self._queue = Queue()

    def _parameters(self, runs: list[list[str]]) -> dict[str, Any]:
        parameters = super()._parameters(runs)
        parameters["mem_gb"] = gib_to_request(parameters["mem_gb"], self._configs(runs))
        parameters["gpus_per_node"] = parameters["gpus_per_node"] or None
        # Since Slurm 22.05, srun does not take the number of CPUs from its job, and may bind a run to one of them.
        cores = "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"
        parameters["setup"] = [*parameters["setup"], cores]
        parameters["teardown"] = requeue_if_killed(self.params["max_restarts_if_killed"], self._jobs_folder)
        return parameters

    def _configs(self, runs: list[list[str]]) -> list[Config]:
        """Return the configs of the runs: from their folders if they have started, composed otherwise."""
        assert self.hydra_context is not None
        return [config_of_job(self.hydra_context.config_loader, self.config, overrides) for overrides in runs]

    def _submit(self, executor: Any, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        outputs = SweepLayout(self._jobs_folder.parent).outputs
        with submitting(outputs):
            queued = queued_runs(outputs)
            calls = {folder_of_job(call[0]): call for call in arguments}
            left = {folder: call for folder, call in calls.items() if folder not in queued}
            for folder in calls.keys() - left.keys():
                print(f"{as_typed(folder)} is queued already and is left alone.", flush=True)
            if not left:
                return [None] * len(calls)
            said = io.StringIO()
            try:
                with contextlib.redirect_stderr(said):  # a refusal is told below, in one sentence
                    jobs = super()._submit(executor, list(left.values()))
            except (FailedJobError, FailedSubmissionError, subprocess.CalledProcessError) as error:
                raise UsageError(f"Slurm refuses the jobs: {refusal(str(error))}") from error
            print(said.getvalue(), end="", file=sys.stderr, flush=True)  # a cluster's own remarks
            remember(self._jobs_folder, dict(zip((job.job_id for job in jobs), left, strict=True)))
        first = jobs[0].job_id.partition("_")[0]
        print(f"Submitted {len(jobs)} runs as Slurm job {first}; logs in {as_typed(self._logs)}.", flush=True)
        submitted = dict(zip(left, jobs, strict=True))
        return [submitted.get(folder) for folder in calls]

    def _ended(self, ids: set[str]) -> set[str]:
        return self._queue.ended(ids)

    def _is_preempted(self) -> bool:
        """Return whether the job still runs although it received SIGTERM: then Slurm is about to preempt it.

        A job that a user cancels, or requeues, is in another state when the signal arrives.
        """
        import submitit

        return self._queue.state(submitit.JobEnvironment().job_id) in STILL_RUNNING

    def _leave(self, jobs: Sequence[Any]) -> None:
        if not jobs:  # another command has submitted them all
            return
        first = jobs[0].job_id.partition("_")[0]
        sweep = self._jobs_folder.parent
        watch = f"cfn runs --watch {shlex.quote(as_typed(sweep))}"
        assert self.config is not None
        resume = resume_command(self.config, [sweep])
        print(
            f"\nThe jobs continue on the cluster: {watch} shows them, and scancel {first} cancels them. "
            f"When they have ended, this continues what is left:\n{resume}",
            flush=True,
        )

    @property
    def _logs(self) -> Path:
        return Path(self.params["submitit_folder"]).absolute().parent


class LocalLauncher(SubmititLauncher):
    """Runs of a sweep as processes on this machine, on the same path as Slurm jobs."""

    _EXECUTOR = "local"

    def _submit(self, executor: Any, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        # A terminal sends Ctrl-C to submitit's own processes, too, which would kill the runs after a second. A run sets
        # its own handler.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._jobs = super()._submit(executor, arguments)
        finally:
            signal.signal(signal.SIGINT, before)
        return self._jobs

    def _ended(self, ids: set[str]) -> set[str]:
        return {job.job_id for job in self._jobs if job.job_id in ids and job.done()}

    def _leave(self, jobs: Sequence[Any]) -> None:
        print("\nThe runs save and stop.", flush=True)
        while left := [job for job in jobs if not job.done()]:
            for job in left:
                job._process.terminate()  # again and again: a run that still imports its libraries misses a signal
            time.sleep(POLL_SECONDS)
