"""`cfn runs`: a list of runs."""

from pathlib import Path

from cfn.analysis.listing import as_text, lines
from cfn.cli.arguments import Parser
from cfn.cli.output import print_problems
from cfn.errors import UsageError
from cfn.runs.record import find_runs


def run(arguments: list[str]) -> None:
    """Run `cfn runs`."""
    parser = Parser("runs", "List runs with their progress, last score and state.")
    parser.add_argument("path", nargs="?", type=Path, default=Path("outputs"), metavar="PATH", help="folder (outputs)")
    options = parser.parse_args(arguments)
    folders, problems = find_runs([options.path])
    if not folders:
        raise UsageError("; ".join(problems))
    print_problems(problems)
    print(as_text(lines(folders)), flush=True)
