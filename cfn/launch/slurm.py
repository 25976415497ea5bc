"""The launchers `hydra/launcher=slurm` and `slurm_local`: a sweep as a Slurm job array, through submitit.

A job that Slurm preempts or stops at its time limit first receives a signal. The training loop finishes its step and
writes a checkpoint; then submitit requeues the job, and the restarted job continues the run in its folder.
"""

import logging
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from hydra.core.utils import JobReturn, JobStatus
from hydra_plugins.hydra_submitit_launcher import submitit_launcher
from hydra_plugins.hydra_submitit_launcher.config import BaseQueueConf
from omegaconf import OmegaConf

from cfn.config import Config
from cfn.errors import UsageError
from cfn.launch import job as entry
from cfn.launch.configs import config_of_job, folder_of_job
from cfn.launch.memory import gib_to_request
from cfn.launch.planning import report_failure
from cfn.launch.queue import Queue, remember
from cfn.runs.folder import as_typed
from cfn.training.signals import StoppedError

POLL_SECONDS = 1.0
"""Seconds between two looks for results."""
ENDED_EARLY = "ended without a result (cancelled, killed, or its node failed)"


class SubmititLauncher(submitit_launcher.BaseSubmititLauncher):  # type: ignore[misc]  # has no types
    """Submits runs, waits for them and returns what became of each."""

    _OWN_KEYS: ClassVar[frozenset[str]] = frozenset({"submitit_folder", "max_num_timeout", "max_restarts_if_killed"})

    def log_to(self, folder: Path) -> None:
        """Keep logs and job files in this folder, unless the user has named another."""
        if self.params.get("submitit_folder") is None:
            self.params["submitit_folder"] = str(folder / "%j")

    def __call__(self, *arguments: Any) -> JobReturn:
        """Run one job, in its own process; requeue it if a signal stopped it."""
        # The root logger writes to the run folder, which a refused run leaves empty and removes.
        logging.getLogger("submitit").propagate = False
        signal.pthread_sigmask(signal.SIG_UNBLOCK, entry.SIGNALS)
        try:
            done: JobReturn = super().__call__(*arguments)
            return done
        except StoppedError as stopped:
            if stopped.code == 128 + signal.SIGUSR2 or self._is_preempted():
                signal.raise_signal(signal.SIGUSR2)  # submitit's handler requeues the job and exits
            raise SystemExit(stopped.code) from None  # the job was cancelled, or Slurm itself requeues it

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        """Submit the runs and wait for them."""
        executor = self._executor([list(overrides) for overrides in job_overrides])
        from hydra.core.singleton import Singleton

        arguments = [
            (list(overrides), "hydra.sweep.dir", number, f"job_id_for_{number}", Singleton.get_state())
            for number, overrides in enumerate(job_overrides, start=initial_job_idx)
        ]
        jobs = self._submit(executor, arguments)
        try:
            return self._wait(jobs, job_overrides)
        except KeyboardInterrupt:
            self._leave(jobs)
            raise

    def _executor(self, runs: list[list[str]]) -> Any:
        import submitit

        python = f"{shlex.quote(sys.executable)} -u -m {entry.__name__}"
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
        return list(executor.map_array(self, *zip(*arguments, strict=True)))

    def _wait(self, jobs: Sequence[Any], runs: Sequence[Sequence[str]]) -> list[JobReturn]:
        results: dict[int, JobReturn] = {}
        while len(results) < len(jobs):
            ended = self._ended({job.job_id for number, job in enumerate(jobs) if number not in results})
            for number, job in enumerate(jobs):
                if number not in results and (job.paths.result_pickle.exists() or job.job_id in ended):
                    results[number] = self._result(job, runs[number])
            time.sleep(POLL_SECONDS)
        return [results[number] for number in range(len(jobs))]

    def _result(self, job: Any, overrides: Sequence[str]) -> JobReturn:
        """Return the result of an ended job, and report a failure."""
        own = [override for override in overrides if not override.startswith("hydra.")]
        reason = ENDED_EARLY
        if job.paths.result_pickle.exists():
            from submitit.core.utils import pickle_load

            outcome, result = pickle_load(job.paths.result_pickle)
            if outcome == "success":
                done: JobReturn = result
                if done.status == JobStatus.FAILED:
                    from cfn.launch.sweeper import Sweeper

                    report_failure(own, Sweeper.describe(done._return_value))
                return done
            reason = str(result).strip().splitlines()[-1]
        report_failure(own, f"{reason}; its log: {job.paths.stdout}")
        return JobReturn(overrides=own, status=JobStatus.FAILED, _return_value=UsageError(reason))

    def _ended(self, ids: set[str]) -> set[str]:
        raise NotImplementedError

    def _is_preempted(self) -> bool:
        return False

    def _leave(self, jobs: Sequence[Any]) -> None:
        """Say what becomes of the jobs after Ctrl-C."""


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
        parameters["setup"] = [*parameters["setup"], "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK"]
        parameters["teardown"] = requeue_if_killed(self.params["max_restarts_if_killed"])
        return parameters

    def _configs(self, runs: list[list[str]]) -> list[Config]:
        """Return the configs of the runs: from their folders if they have started, composed otherwise."""
        assert self.hydra_context is not None
        return [config_of_job(self.hydra_context.config_loader, self.config, overrides) for overrides in runs]

    def _submit(self, executor: Any, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        try:
            jobs = super()._submit(executor, arguments)
        except (FailedJobError, FailedSubmissionError, subprocess.CalledProcessError) as error:
            raise UsageError(f"Slurm refuses the jobs: {refusal(str(error))}") from error
        first = jobs[0].job_id.partition("_")[0]
        folders = [folder_of_job(call[0]) for call in arguments]
        remember(Path(self._logs), dict(zip((job.job_id for job in jobs), folders, strict=True)))
        print(f"Submitted {len(jobs)} runs as Slurm job {first}; logs in {as_typed(self._logs)}.", flush=True)
        return jobs

    def _ended(self, ids: set[str]) -> set[str]:
        return self._queue.ended(ids)

    def _is_preempted(self) -> bool:
        """Return whether the job still runs although it received SIGTERM: then Slurm is about to preempt it.

        A job that a user cancels, or requeues, is in another state when the signal arrives.
        """
        import submitit

        return self._queue.state(submitit.JobEnvironment().job_id) == "RUNNING"

    def _leave(self, jobs: Sequence[Any]) -> None:
        first = jobs[0].job_id.partition("_")[0]
        print(
            f"\nThe jobs continue on the cluster. cfn runs --watch shows them, scancel {first} cancels them, and "
            f"cfn resume {as_typed(self._logs.parent)} continues what is left when they have ended.",
            flush=True,
        )

    @property
    def _logs(self) -> Path:
        return Path(self.params["submitit_folder"]).absolute().parent


class LocalLauncher(SubmititLauncher):
    """Runs of a sweep as processes on this machine, on the same path as Slurm jobs."""

    _EXECUTOR = "local"

    def _submit(self, executor: Any, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        self._jobs = super()._submit(executor, arguments)
        return self._jobs

    def _ended(self, ids: set[str]) -> set[str]:
        return {job.job_id for job in self._jobs if job.job_id in ids and job.done()}


def requeue_if_killed(most: int) -> list[str]:
    """Return the shell commands after a run.

    They requeue a job that was killed on its node (137), up to a number of restarts, and one that the warning signal
    ended before Python could block it (140).
    """
    restarts = '"${SLURM_RESTART_COUNT:-0}"'
    killed = f"{{ [ $code -eq 137 ] && [ {restarts} -lt {most} ]; }}"
    # The number of an array's last task is that of the whole array: a task is requeued by array and index.
    task = "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"
    return ["code=$?", f'if [ $code -eq 140 ] || {killed}; then scontrol requeue "{task}"; fi', "exit $code"]


def refusal(message: str) -> str:
    """Return the reason in a message of sbatch, with the key to change."""
    lines = [line.strip() for line in message.splitlines() if "error:" in line]
    reason = lines[-1].partition("error:")[2].strip() if lines else " ".join(message.split())
    reason = reason.removeprefix("Batch job submission failed:").strip()
    keys = {
        "partition": "partition",
        "account": "account",
        "qos": "qos",
        "memory": "mem_gb",
        "time limit": "timeout_min",
        "gres": "gpus_per_node",
        "cpu": "cpus_per_task",
        "node configuration": "gpus_per_node, hydra.launcher.cpus_per_task or hydra.launcher.mem_gb",
    }
    hint = next((key for word, key in keys.items() if word in reason.lower()), None)
    return f"{reason}: check hydra.launcher.{hint}" if hint else reason
