"""`cfn report`: one HTML page on runs."""

import warnings
from pathlib import Path

from cfn.analysis.figures.panels import Style
from cfn.analysis.grouping import group
from cfn.analysis.report.page import page
from cfn.analysis.scores import unequal
from cfn.analysis.sides import select
from cfn.cli.arguments import Parser, add_paths, add_style, add_where
from cfn.cli.output import create_folder, print_problems
from cfn.errors import UsageError
from cfn.runs.record import load_runs


def run(arguments: list[str]) -> None:
    """Run `cfn report`."""
    parser = Parser("report", "Write one HTML page on runs: settings, tables, figures, and bonuses over time.")
    add_paths(parser)
    parser.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="page (report.html)")
    add_where(parser)
    add_style(parser)
    options = parser.parse_args(arguments)
    records, problems = load_runs(options.paths)
    records = select(records, options.where)
    groups, repeated = group(records)
    warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser has these letters
    problems += [*repeated, *unequal(groups)]
    create_folder(options.out.parent)
    text = page(groups, Style(options.stat, options.seeds), problems, options.out.parent)
    try:
        options.out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {options.out} cannot be written: {error.strerror}") from error
    print_problems([*problems, *(problem for record in records for problem in record.problems)])
    print(options.out)
