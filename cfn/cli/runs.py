"""`cfn runs`: a list of runs."""

from pathlib import Path

from cfn.analysis.listing import as_csv, as_json, as_text, lines, rows
from cfn.cli.arguments import Parser, add_where
from cfn.cli.output import print_problems
from cfn.errors import UsageError
from cfn.runs.record import find_runs


def run(arguments: list[str]) -> None:
    """Run `cfn runs`."""
    parser = Parser("runs", "List runs with their progress, last score and state.")
    parser.add_argument("path", nargs="?", type=Path, default=Path("outputs"), metavar="PATH", help="folder (outputs)")
    add_where(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the list as JSON, with numbers as numbers")
    form.add_argument("--csv", action="store_true", help="print the list as CSV, with the columns of --json")
    options = parser.parse_args(arguments)
    folders, problems = find_runs([options.path])
    if not folders:
        raise UsageError("; ".join(problems))
    print_problems(problems)
    if options.json or options.csv:
        print((as_json if options.json else as_csv)(rows(folders, options.where)), flush=True)
    else:
        print(as_text(lines(folders, options.where)), flush=True)
