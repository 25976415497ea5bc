"""Copies of an environment in several processes, so that more than one core steps environments.

Each process has several environments, next to each other in the batch, and answers one message per step. Threads would
not do, because ALE and most environments keep Python's lock; with a process per environment, the messages take longer
than the steps.
"""

import logging
import weakref
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cfn import seeding
from cfn.envs.copies import Description, Fault, Make, Start, Step
from cfn.envs.process import Process, WorkerDiedError
from cfn.errors import UsageError
from cfn.types import Array, Metrics


class Workers:
    """Copies of an environment in several processes, with the methods of `Copies`.

    If a process ends, all its environments have failed. It is started again with new ones, which begin new episodes;
    those that were not called when it ended fail in their next step.

    Args:
        make: Function that makes one environment. It is pickled.
        num_envs: Number of environments.
        processes: Number of processes.
        seed: Seed of the run.
    """

    def __init__(self, make: Make, num_envs: int, processes: int, seed: int) -> None:
        self._failures = dict.fromkeys(range(num_envs), 0)
        self._gone: dict[int, Fault] = {}  # environments that have failed with their process, until they are reset
        bounds = [num_envs * k // processes for k in range(processes + 1)]
        shares = [range(first, last) for first, last in pairwise(bounds)]
        self._processes: list[Process] = []
        self.close = weakref.finalize(self, _close, self._processes)
        """Close the environments and end the processes; also when this object is deleted, or Python exits."""
        try:
            for share in shares:
                self._processes.append(Process(make, share, seeding.integer(seed, "worker", share[0])))
            descriptions = [self._receive(process) for process in self._processes]
            self.description: Description = descriptions[0]
        except BaseException as error:
            self.close()
            if isinstance(error, WorkerDiedError):
                raise UsageError(f"the environments cannot be created: {error}") from error
            raise

    def reset(self, indices: Sequence[int], seeds: Sequence[int]) -> Iterator[Start | Fault]:
        """Begin an episode with a seed in each of these environments."""
        return self._ask("reset", indices, seeds)

    def step(self, indices: Sequence[int], actions: Array) -> Iterator[Step | Fault]:
        """Take an action in each of these environments."""
        return self._ask("step", indices, actions)

    def replay(
        self, indices: Sequence[int], episodes: Sequence[tuple[int, Sequence[Any]]]
    ) -> Iterator[Array | Fault | None]:
        """Repeat an episode in each of these environments."""
        return self._ask("replay", indices, episodes)

    def recreate(self, i: int) -> Fault | None:
        """Create an environment again; return a fault if that fails."""
        (process,) = (process for process in self._processes if i in process.indices)
        self._failures[i] = 0
        try:
            if i not in self._gone:
                result: Fault | None = self._call(process, "recreate", i)
                return result
            if not process.running:
                process.start()
                self._receive(process)
        except WorkerDiedError as error:
            return Fault(str(error), error)
        return None

    def failures(self, i: int) -> int:
        """Return the number of failures that an environment has counted itself."""
        return self._failures[i]

    def is_solved(self, episodes: int, means: Metrics) -> bool:
        """Return whether the environment's criterion is met."""
        return bool(self._call(self._processes[0], "is_solved", episodes, means))

    @property
    def step_limit(self) -> int | None:
        """Steps after which an episode is truncated; None if there is no limit."""
        limit: int | None = self._call(self._processes[0], "step_limit")
        return limit

    def _ask(self, method: str, indices: Sequence[int], values: Any) -> Iterator[Any]:
        """Send each process its share of the values, and return the results in the order of the environments.

        All answers are received before an error is raised, so that the next one belongs to the next message.
        """
        if method != "step":  # a new episode, in an environment of the new process
            for i in indices:
                self._gone.pop(i, None)
        results: dict[int, Any] = {i: self._gone[i] for i in indices if i in self._gone}
        asked, errors = [], []
        for process in self._processes:
            rows = [row for row, i in enumerate(indices) if i in process.indices and i not in results]
            if rows:
                mine = [indices[row] for row in rows]
                process.send(
                    method, mine, values[rows] if isinstance(values, np.ndarray) else [values[r] for r in rows]
                )
                asked.append((process, mine))
        for process, mine in asked:
            try:
                results |= zip(mine, self._receive(process), strict=True)
            except UsageError as error:
                errors.append(error)
            except WorkerDiedError as error:
                self._gone |= dict.fromkeys(process.indices, Fault(str(error), error))
                results |= {i: self._gone[i] for i in mine}
        if errors:
            raise errors[0]
        return iter([results[i] for i in indices])

    def _call(self, process: Process, method: str, *arguments: Any) -> Any:
        process.send(method, *arguments)
        return self._receive(process)

    def _receive(self, process: Process) -> Any:
        reply = process.receive()
        self._failures |= {i: number for i, number in reply.failures.items() if i not in self._gone}
        for name, level, text in reply.records:
            logging.getLogger(name).log(level, "%s", text)
        if isinstance(reply.result, UsageError):
            raise reply.result
        return reply.result


def _close(processes: Sequence[Process]) -> None:
    for process in processes:
        process.hang_up()
    for process in processes:
        process.end()
