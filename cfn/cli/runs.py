"""`cfn runs`: a list of runs."""

from pathlib import Path

from cfn.analysis.listing import as_text
from cfn.analysis.planned import listed
from cfn.cli.arguments import Parser
from cfn.cli.output import print_problems
from cfn.errors import UsageError


def run(arguments: list[str]) -> None:
    """Run `cfn runs`."""
    parser = Parser("runs", "List runs with their progress, last score and state.")
    parser.add_argument(
        "path", nargs="?", type=Path, default=Path("outputs"), metavar="PATH", help="folder or sweep (outputs)"
    )
    parser.add_argument("filters", nargs="*", metavar="key=value", help="with --watch: such as bonus=cfn state=running")
    parser.add_argument("--watch", action="store_true", help="show a live table, with the time left")
    parser.add_argument("--sort", default="left", metavar="COLUMN", help="with --watch: column to sort by (left)")
    options = parser.parse_intermixed_args(arguments)
    if options.watch:
        from cfn.cli.watch import watch  # slow to import, and a list does without

        watch(options.path, options.filters, options.sort)
        return
    if options.filters:
        parser.error(f"{options.filters[0]}: filters need --watch")
    table, problems = listed(options.path)
    if not table:
        raise UsageError("; ".join(problems))
    print_problems(problems)
    print(as_text(table), flush=True)
