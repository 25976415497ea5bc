"""`cfn runs`: list runs."""

from pathlib import Path

from cfn.analysis.listing import as_csv, as_json, as_line, as_text
from cfn.analysis.planned import listed
from cfn.cli.arguments import Parser, add_where
from cfn.cli.output import print_problems
from cfn.errors import UsageError


def run(arguments: list[str]) -> None:
    """Run `cfn runs`."""
    parser = Parser("runs", "List runs with their progress, last score and state.")
    parser.add_argument(
        "path", nargs="?", type=Path, default=Path("outputs"), metavar="PATH", help="folder or sweep (outputs)"
    )
    parser.add_argument("filters", nargs="*", metavar="key=value", help="with --watch: such as bonus=cfn state=running")
    add_where(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the list as JSON, with numbers as numbers")
    form.add_argument("--csv", action="store_true", help="print the list as CSV, with the columns of --json")
    form.add_argument("--watch", action="store_true", help="show a live table, with the time left")
    parser.add_argument("--sort", metavar="COLUMN", help="with --watch: column to sort by (left)")
    options = parser.parse_intermixed_args(arguments)
    if options.watch:
        from cfn.cli.watch import watch  # slow to import, and a list does without

        watch(options.path, options.filters, options.sort or "left", options.where)
        return
    if options.filters:
        parser.error(f"{options.filters[0]}: filters need --watch; --where chooses runs without it")
    if options.sort:
        parser.error(f"--sort {options.sort}: only the live table is sorted: add --watch")
    table, problems = listed(options.path, options.where)
    if not table:
        raise UsageError("; ".join(problems))
    print_problems(problems)
    if options.json or options.csv:
        print((as_json if options.json else as_csv)(table), flush=True)
    else:
        print(as_text([as_line(row) for row in table]), flush=True)
