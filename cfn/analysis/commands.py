"""The commands that read runs: `cfn plot`, `cfn runs` and `cfn report`. They take nothing but files, and train nothing.

Pictures and tables are told on the standard output, what had to be left out on the standard error.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from cfn.analysis.files import printable
from cfn.arguments import Parser
from cfn.errors import UsageError

_MOST_PROBLEMS = 12
"""Sentences on what was left out; of more, only the number is told."""


def plot(arguments: list[str], conf: Path) -> None:
    """`cfn plot`: pictures and tables of runs.

    Args:
        arguments: What follows the command's word.
        conf: The folder of the configs, which know what an experiment consists of.
    """
    from cfn.analysis.comparison import compare, too_many
    from cfn.analysis.figures import FIGURES, save
    from cfn.analysis.groups import group
    from cfn.analysis.panels import Style, unequal
    from cfn.analysis.runs import load
    from cfn.analysis.tables import write_table

    parser = Parser("plot", "Draw what runs hold: seeds grouped by their setting, whatever differs in the legend.")
    _add_paths(parser)
    parser.add_argument("--out", type=Path, default=Path("plots"), metavar="DIR", help="where pictures go (plots)")
    parser.add_argument("--format", choices=("png", "pdf", "svg"), default="png", help="of the pictures (png)")
    _add_style(parser)
    parser.add_argument("--table", action="store_true", help="also table.md and table.csv, and print the first")
    parser.add_argument(
        "--figure", choices=FIGURES, metavar="NAME", help=f"a figure of the paper: {', '.join(FIGURES)}"
    )
    options = parser.parse_args(arguments)

    warnings.filterwarnings("ignore", "Glyph .* missing")  # names in other scripts are legible in tables
    style = Style(options.stat, options.seeds)
    records, problems = load(options.paths)
    if options.figure:
        from cfn.analysis.experiments import members

        found = members(records, options.figure, conf)
        groups, left_out = found.groups, found.problems
        pictures = iter([(options.figure, FIGURES[options.figure](found, style))])
    else:
        groups, left_out = group(records)
        left_out += too_many(groups)
        pictures = compare(groups, style)
    _tell([*left_out, *problems, *unequal(groups)])
    _make(options.out)
    for name, figure in pictures:
        print(save(figure, options.out / f"{name}.{options.format}"), flush=True)
    _tell(problem for record in records for problem in record.problems)
    if options.table:
        paths, text = write_table(groups, style, options.out)
        print(*paths, sep="\n")
        print(f"\n{text}", end="")


def runs(arguments: list[str], _: Path) -> None:
    """`cfn runs`: a line for each run."""
    from cfn.analysis.listing import as_text, lines
    from cfn.analysis.runs import find

    parser = Parser("runs", "List runs: how far each is, its last score, and whether it is running.")
    parser.add_argument("path", nargs="?", type=Path, default=Path("outputs"), metavar="PATH", help="(outputs)")
    options = parser.parse_args(arguments)
    folders, problems = find([options.path])
    if not folders:
        raise UsageError("; ".join(problems))
    _tell(problems)
    print(as_text(lines(folders)), flush=True)


def report(arguments: list[str], _: Path) -> None:
    """`cfn report`: one page on runs."""
    from cfn.analysis.groups import group
    from cfn.analysis.panels import Style, unequal
    from cfn.analysis.report import page
    from cfn.analysis.runs import load

    parser = Parser("report", "One page on runs, in one file: settings, tables, figures, and bonuses over time.")
    _add_paths(parser)
    parser.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="(report.html)")
    _add_style(parser)
    options = parser.parse_args(arguments)
    records, problems = load(options.paths)
    groups, repeated = group(records)
    warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser has them
    problems += [*repeated, *unequal(groups)]
    _make(options.out.parent)
    text = page(groups, Style(options.stat, options.seeds), problems, options.out.parent)
    try:
        options.out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {options.out} cannot be written: {error.strerror}") from error
    _tell([*problems, *(problem for record in records for problem in record.problems)])
    print(options.out)


def _add_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="run folders, or folders above them")


def _add_style(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stat",
        choices=("iqm", "mean"),
        default="iqm",
        help="over seeds: iqm, the interquartile mean with 95%% bootstrap intervals (the default), or mean, with "
        "standard errors as in the paper",
    )
    parser.add_argument("--seeds", action="store_true", help="a thin line for each seed, too")


def _tell(problems: Iterable[str]) -> None:
    told = list(dict.fromkeys(problems))
    for problem in told[:_MOST_PROBLEMS]:
        print(f"cfn: {printable(problem)}", file=sys.stderr)
    if len(told) > _MOST_PROBLEMS:
        print(f"cfn: and {len(told) - _MOST_PROBLEMS:,} more like these", file=sys.stderr)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "this is a file" if folder.is_file() else error.strerror
        raise UsageError(f"--out {folder}: {reason}; choose a folder that can be written to") from error


COMMANDS: dict[str, Callable[[list[str], Path], None]] = {"plot": plot, "runs": runs, "report": report}
