"""`cfn compare`: two settings against each other."""

import argparse
import json
from pathlib import Path

from cfn.analysis.head_to_head import as_json, as_markdown, head_to_head
from cfn.analysis.sides import Side, match, same_setting, select
from cfn.cli.arguments import Parser, add_filter, add_paths, add_score, add_where
from cfn.cli.output import print_problems
from cfn.errors import UsageError
from cfn.runs.reading import printable
from cfn.runs.record import load_runs

EXAMPLES = """\
examples:
  cfn compare outputs/before outputs/after              two folders of runs
  cfn compare outputs --a bonus=cfn --b bonus=rnd       two settings of the same runs
  cfn compare outputs --a bonus.scale=0.01 --b bonus.scale=0.03 --where bonus=cfn --metric explore/states"""


def run(arguments: list[str]) -> None:
    """Run `cfn compare`."""
    options = _parser().parse_args(arguments)
    if options.score and options.metric:
        raise UsageError("--score and --metric both name what is compared: choose one")
    a, b, problems = _sides(options)
    matches, left_out = match(a, b, options.pool)
    if (same := same_setting(matches)) is not None:
        sentence = f"A ({a.source}) and B ({b.source}) have the same setting in {same.task} ({same.labels[0]})"
        if options.a:
            raise UsageError(f"{sentence}: choose settings that differ")
        left_out.append(f"{sentence}; only their runs differ")
    result = head_to_head(matches, options.score or "eval", options.metric)
    print_problems([*problems, *left_out, *result.problems])
    sources = a.source, b.source
    print(as_markdown(result, sources), end="")
    if options.json is not None:
        text = json.dumps(as_json(result, sources, matches), indent=2, allow_nan=False)
        try:
            options.json.write_text(f"{text}\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--json {options.json} cannot be written: {error.strerror}") from error


def _sides(options: argparse.Namespace) -> tuple[Side, Side, list[str]]:
    """Return both sides, and sentences on runs that are left out."""
    if bool(options.a) != bool(options.b):
        raise UsageError(f"--{'a' if options.a else 'b'} needs --{'b' if options.a else 'a'}: name both settings")
    if options.a:
        records, problems = load_runs(options.paths)
        records = select(records, options.where)
        sides = [
            Side(name, " ".join(map(str, filters)), f"--{name.lower()}", select(records, filters))
            for name, filters in (("A", options.a), ("B", options.b))
        ]
        return sides[0], sides[1], problems
    if len(options.paths) != 2:
        number = len(options.paths)
        hint = "or choose two settings with --a KEY=VALUE and --b KEY=VALUE"
        raise UsageError(f"{number} folder{'s are' if number > 1 else ' is'} named: name two, {hint}")
    sides, problems = [], []
    for name, path in zip("AB", options.paths, strict=True):
        records, left_out = load_runs([path])
        sides.append(Side(name, printable(path), "--where", select(records, options.where)))
        problems += left_out
    return sides[0], sides[1], problems


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        "compare",
        "Compare two settings, A and B, task by task and over all tasks: the difference of their scores,\n"
        "the probability that a run of A scores higher than one of B, and the Mann-Whitney test.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_paths(parser)
    text = "runs of setting A; without --a and --b, the first folder is A and the second is B"
    add_filter(parser, "--a", text)
    add_filter(parser, "--b", "runs of setting B")
    add_where(parser, "runs of both settings")
    add_score(parser)
    parser.set_defaults(score=None)  # to tell --score eval from no --score
    parser.add_argument("--metric", metavar="NAME", help="compare the last value of a logged metric, not the score")
    parser.add_argument("--pool", action="store_true", help="pool several settings of a side instead of refusing them")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the comparison to a file, as JSON")
    return parser
