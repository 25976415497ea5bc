"""The command `cfn`: the table of commands, and one way to run them and to report their errors."""

import importlib
import logging
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from cfn import __version__
from cfn.cli import completion
from cfn.cli.messages import describe
from cfn.envs.notices import log_warnings_of_gymnasium


class Command(NamedTuple):
    """One command. Its module `cfn.cli.<name>` has a function `run(arguments)`.

    Attributes:
        arguments: Arguments in the usage text.
        summary: What it does, in the usage text.
        first_key: Index of its first argument that is a config key, which the shell can complete; None: it has no keys.
    """

    arguments: str
    summary: str
    first_key: int | None = None


COMMANDS = {
    "train": Command("[key=value ...]", "train an agent with a bonus in an environment (see cfn train --help)", 0),
    "exam": Command("bonus=NAME [key=value ...]", "examine whether a bonus counts (see cfn exam --help)", 0),
    "resume": Command("RUN | SWEEP", "continue a run, or all of a sweep that is not finished (steps=N: extend)", 1),
    "eval": Command("RUN", "play with a trained agent (--episodes N) and film it (--video)"),
    "plot": Command("PATH...", "draw pictures and tables of runs (see cfn plot --help)"),
    "compare": Command("A B", "compare two settings: difference, probability of improvement, test"),
    "runs": Command("[PATH]", "list runs with their progress and scores"),
    "bench": Command("[key=value ...]", "measure the cost of a run on this machine", 0),
    "report": Command("PATH...", "write one HTML page on runs"),
}

EXAMPLES = """\
  cfn train                                       the default: a small visual gridworld
  cfn train env=gridworld bonus=count seed=1      the paper's values for that environment
  cfn train -m bonus=none,count seed=0,1,2        a sweep
  eval "$(cfn -sc install=bash)"                  completion of commands, groups and keys by the tab key"""


def main() -> int:
    """Run the command line and return its exit code."""
    logging.raiseExceptions = False  # a log line that a full disk rejects must not print a traceback
    name, *arguments = sys.argv[1:] or [""]
    if name in ("-sc", "--shell-completion"):
        first_keys = {command: COMMANDS[command].first_key for command in COMMANDS}
        return completion.complete(arguments, first_keys, run_command)
    if name in ("-h", "--help", "help"):
        print(usage())
        return 0
    if name in ("-V", "--version"):
        print(f"cfn {__version__}")
        return 0
    if name not in COMMANDS:
        problem = f"cfn: there is no command {name!r}: choose from {', '.join(COMMANDS)} (see cfn --help)"
        print(problem if name else usage(), file=sys.stderr)
        return 2
    return run_command(name, arguments)


def usage() -> str:
    """Return the usage text."""
    lines = [f"  {f'cfn {name} {command.arguments}':<28} {command.summary}" for name, command in COMMANDS.items()]
    lines.append(f"  {'cfn --version':<28} print the version")
    return "\n".join(["cfn: a laboratory for count-based exploration", "", *lines, "", EXAMPLES])


def run_command(name: str, arguments: list[str]) -> int:
    """Run a command and return its exit code; errors are printed as sentences, or raised with HYDRA_FULL_ERROR=1."""
    raise_errors = os.environ.get("HYDRA_FULL_ERROR") == "1"
    log_warnings_of_gymnasium()  # some come with the import of an environment's module
    try:
        # Imported here: PyTorch and matplotlib are slow to import, and most commands need one of them at most.
        run: Callable[[list[str]], None] = importlib.import_module(f"cfn.cli.{name}").run
        run(arguments)
    except KeyboardInterrupt as stopped:
        print("cfn: stopped", file=sys.stderr)
        return int(getattr(stopped, "code", 130))
    except BrokenPipeError:  # the reader (head, less) has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        if raise_errors:
            raise
        print(f"cfn: {describe(error)}", file=sys.stderr)
        return 1
    return 0
