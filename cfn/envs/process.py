"""A process with some copies of an environment: the handle that a run has of it, and its program.

The process is a new Python interpreter, and receives the function that makes environments. It imports no PyTorch unless
an environment does: with a gridworld it takes 0.3 seconds to start. Forking would be faster and unsafe: PyTorch's
threads are running in the run's process, and a lock that one of them holds would never be released in a fork.
`multiprocessing` starts interpreters as well, but each runs the main module again, and its own daemonic processes may
not start any.

Ctrl-C and other signals to stop reach all processes of a terminal or a job. The run decides when it stops; its
processes ignore signals, and end when their pipe closes. The operating system closes it even if the run is killed.
"""

import contextlib
import logging
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import cloudpickle  # type: ignore[import-untyped]

from cfn import seeding
from cfn.envs.copies import Copies, Description, Fault, Make
from cfn.envs.notices import log_warnings_of_gymnasium
from cfn.errors import FAULTS, UsageError
from cfn.schema import import_problem
from cfn.stop_signals import SIGNALS, ignore_signals

POLL_MILLISECONDS = 1000
"""Milliseconds between two looks at whether a process that does not answer is still running."""
CLOSING_SECONDS = 10.0
"""Seconds that environments may take to close."""
INTERRUPTED_SECONDS = 1.0
"""The same after a second Ctrl-C, while they were called."""
START = "import sys; sys.path[:] = sys.argv[2:]; from cfn.envs import process; process.serve(int(sys.argv[1]))"
"""The program. It imports from where the run does."""


class WorkerDiedError(Exception):
    """A process with environments has ended: it crashed, was killed or left."""


class RemoteError(Exception):
    """Error of an environment in another process. The message is the traceback."""


class Task(NamedTuple):
    """First message to a process.

    Attributes:
        make: Function that makes one environment.
        indices: Numbers of its environments in the whole batch.
        seed: Seed of its global generators.
        log_level: Lowest level of the messages to log.
    """

    make: Make
    indices: range
    seed: int
    log_level: int


class Reply(NamedTuple):
    """Answer of a process.

    Attributes:
        result: Result of the call, or a `UsageError`.
        failures: Number of failures that each environment has counted itself.
        records: Logger, level and text of the messages to log.
    """

    result: Any
    failures: dict[int, int]
    records: list[tuple[str, int, str]]


class Process:
    """A process with some of the environments.

    Args:
        make: Function that makes one environment.
        indices: Numbers of its environments in the whole batch.
        seed: Seed of its global generators.
    """

    def __init__(self, make: Make, indices: range, seed: int) -> None:
        self.indices, self.running = indices, False
        self._calls = 0  # without an answer yet
        try:
            self._task = cloudpickle.dumps(Task(make, indices, seed, logging.getLogger().getEffectiveLevel()))
        except Exception as error:  # an object's own methods take part in pickling it
            reason = import_problem(error)
            raise UsageError(f"env_workers: the environment cannot be sent to another process ({reason})") from error
        self.start()

    def start(self) -> None:
        """Start the process; its first answer is a `Description`."""
        self._connection, theirs = multiprocessing.Pipe()
        self._answers = select.poll()  # Connection.poll takes ten times as long
        self._answers.register(self._connection.fileno(), select.POLLIN)
        command = [sys.executable, "-P", "-c", START, str(theirs.fileno()), *sys.path]
        with theirs, _blocked_signals():  # until it ignores them
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=_descriptor(sys.stdout),
                stderr=_descriptor(sys.stderr),
            )
        self.running, self._calls = True, 1
        with contextlib.suppress(OSError):
            self._connection.send_bytes(self._task)

    def send(self, method: str, *arguments: Any) -> None:
        """Send the call of a method of its `Copies`; `receive` reports it if the process has ended."""
        self._calls += 1
        with contextlib.suppress(OSError):
            self._connection.send((method, arguments))

    def receive(self) -> Reply:
        """Return the next answer; raise `WorkerDiedError` if the process has ended."""
        try:
            while not self._answers.poll(POLL_MILLISECONDS):
                if self._process.poll() is not None:  # a child of its own may keep the pipe open
                    raise EOFError
            reply: Reply = self._connection.recv()
            self._calls -= 1
            return reply
        except (EOFError, OSError) as error:
            self.hang_up()
            self.end()
            code, which = self._process.returncode, f"{self.indices[0]} to {self.indices[-1]}"
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            raise WorkerDiedError(f"the process of environments {which} {how}") from error

    def hang_up(self) -> None:
        """Close the pipe: the process closes its environments and ends."""
        self.running = False
        self._connection.close()

    def end(self) -> None:
        """Wait for the end of the process, and kill it if it does not come; soon if a call was interrupted."""
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(INTERRUPTED_SECONDS if self._calls else CLOSING_SECONDS)
        finally:  # also if Ctrl-C interrupts
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def _blocked_signals() -> Iterator[None]:
    """Let a process that is started meanwhile begin with blocked signals; those to this process wait."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _descriptor(stream: Any) -> int | None:
    """Return the file descriptor of a stream, which may have been redirected; None if it has none."""
    try:
        stream.flush()
        return int(stream.fileno())
    except (OSError, AttributeError, ValueError):
        return None


def serve(descriptor: int) -> None:
    """Call environments as messages ask, until the pipe closes. The program of a process runs this.

    Args:
        descriptor: File descriptor of the pipe.
    """
    ignore_signals()
    os.set_inheritable(descriptor, False)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]
    log_warnings_of_gymnasium()
    records = _Records()
    made: list[Copies] = []

    def begin(pickled: bytes) -> Description:
        task: Task = pickle.loads(pickled)
        logging.getLogger().setLevel(task.log_level)
        logging.getLogger().addHandler(records)
        seeding.seed_imported(task.seed)
        made.append(Copies(task.make, task.indices))
        return made[0].description

    def call(method: str, arguments: tuple[Any, ...]) -> Any:
        attribute = getattr(made[0], method)
        result = attribute(*arguments) if callable(attribute) else attribute
        return [_sendable(one) for one in result] if isinstance(result, Iterator) else _sendable(result)

    with Connection(descriptor) as connection:
        threading.Thread(target=_exit_after, args=[descriptor], daemon=True).start()
        with contextlib.suppress(EOFError, OSError):
            _answer(connection, partial(begin, connection.recv_bytes()), made, records)
            while made:
                _answer(connection, partial(call, *connection.recv()), made, records)
        for copies in made:
            copies.close()


def _answer(connection: Connection, call: Callable[[], Any], made: Sequence[Copies], records: "_Records") -> None:
    """Make a call and send its result, or its error as a sentence."""
    try:
        result = call()
    except UsageError as error:
        result = UsageError(str(error))
    except FAULTS as error:
        result = UsageError(f"an environment failed in its process: {import_problem(error)}")
    failures = {i: copies.failures(i) for copies in made for i in copies.envs}
    try:
        connection.send(Reply(result, failures, records.take()))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        sentence = f"an environment returned what cannot be sent to another process ({import_problem(error)})"
        connection.send(Reply(UsageError(f"{sentence}: use env_workers=1"), failures, []))


def _sendable(result: Any) -> Any:
    """Return a result with the traceback of a fault as text."""
    if not isinstance(result, Fault) or result.error is None:
        return result
    return Fault(result.reason, RemoteError("\n" + "".join(traceback.format_exception(result.error))))


class _Records(logging.Handler):
    """Keeps messages until they are sent."""

    def __init__(self) -> None:
        super().__init__()
        self._records: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self._records.append((record.name, record.levelno, self.format(record)))

    def take(self) -> list[tuple[str, int, str]]:
        """Return the messages since the last call."""
        records, self._records = self._records, []
        return records


def _exit_after(descriptor: int) -> None:
    """Wait until the pipe closes, and end the process if an environment does not return."""
    poll = select.poll()
    poll.register(descriptor, 0)  # reports only that it was closed
    poll.poll()
    time.sleep(CLOSING_SECONDS)
    os._exit(1)
