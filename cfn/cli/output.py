"""Output of the commands that read runs: results go to standard output, problems to standard error."""

import sys
from collections.abc import Iterable
from pathlib import Path

from cfn.errors import UsageError
from cfn.runs.reading import printable

MAX_PROBLEMS = 12
"""Maximum number of problems printed; the others are only counted."""


def print_problems(problems: Iterable[str]) -> None:
    """Print each distinct problem once, up to a limit."""
    distinct = list(dict.fromkeys(problems))
    for problem in distinct[:MAX_PROBLEMS]:
        print(f"cfn: {printable(problem)}", file=sys.stderr)
    if len(distinct) > MAX_PROBLEMS:
        print(f"cfn: and {len(distinct) - MAX_PROBLEMS:,} more like these", file=sys.stderr)


def create_folder(folder: Path) -> None:
    """Create the folder that `--out` names."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "this is a file" if folder.is_file() else error.strerror
        raise UsageError(f"--out {folder}: {reason}; choose a writable folder") from error
