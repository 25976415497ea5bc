"""`cfn plot`: pictures and tables of runs."""

import warnings
from pathlib import Path

from cfn.analysis.experiments import members
from cfn.analysis.figures.common import save
from cfn.analysis.figures.data import write_data
from cfn.analysis.figures.panels import Style
from cfn.analysis.figures.paper import FIGURES, write_table_of
from cfn.analysis.figures.several_runs import compare, too_many
from cfn.analysis.grouping import group
from cfn.analysis.scores import unequal
from cfn.analysis.sides import select
from cfn.analysis.tables import write_table
from cfn.cli.arguments import Parser, add_error, add_paths, add_score, add_style, add_where
from cfn.cli.output import create_folder, print_problems
from cfn.config import CONF
from cfn.runs.record import load_runs


def run(arguments: list[str]) -> None:
    """Run `cfn plot`."""
    parser = Parser("plot", "Draw runs. Seeds are grouped by setting; the keys that differ are in the legend.")
    add_paths(parser)
    parser.add_argument("--out", type=Path, default=Path("plots"), metavar="DIR", help="folder of the pictures (plots)")
    parser.add_argument("--format", choices=("png", "pdf", "svg"), default="png", help="format of the pictures (png)")
    parser.add_argument(
        "--data", action="store_true", help="also write the numbers behind each picture, as a tidy CSV file beside it"
    )
    add_where(parser)
    add_style(parser)
    add_score(parser)
    add_error(parser)
    parser.set_defaults(stat=None, score=None, error=None)  # each figure of the paper has its own defaults
    parser.add_argument(
        "--table",
        action="store_true",
        help="also write table.md and table.csv, and print the former; with --figure scale_search, the table of the "
        "search",
    )
    parser.add_argument(
        "--figure", choices=FIGURES, metavar="NAME", help=f"a figure of the paper: {', '.join(FIGURES)}"
    )
    options = parser.parse_args(arguments)

    warnings.filterwarnings("ignore", "Glyph .* missing")  # names in other scripts are legible in tables
    defaults = FIGURES[options.figure].style if options.figure else Style()
    named = {name: value for name in ("stat", "score", "error") if (value := getattr(options, name)) is not None}
    style = defaults._replace(seeds=options.seeds, **named)
    records, problems = load_runs(options.paths)
    records = select(records, options.where)
    if options.figure:
        found = members(records, options.figure, CONF)
        groups, left_out = found.groups, found.problems
        pictures = iter([(options.figure, FIGURES[options.figure].draw(found, style))])
    else:
        groups, left_out = group(records)
        left_out += too_many(groups)
        pictures = compare(groups, style)
    print_problems([*left_out, *problems, *unequal(groups, style.score)])
    create_folder(options.out)
    for name, figure in pictures:
        if options.data:  # before the figure is saved, which closes it
            print(write_data(figure, options.out / f"{name}.csv"), flush=True)
        print(save(figure, options.out / f"{name}.{options.format}"), flush=True)
    print_problems(problem for record in records for problem in record.problems)
    if not options.table:
        return
    own = options.out / f"{options.figure}.md"
    if options.figure and (text := write_table_of(options.figure, found, style, own)):
        paths = [own]
    else:
        paths, text = write_table(groups, style.stat, options.out, style.score)
    print(*paths, sep="\n")
    print(f"\n{text}", end="")
