"""Parsing of arguments, for the commands that do not use Hydra."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from cfn.analysis.sides import Filter

TRUST = "class or module outside this package that the run may import; a module stands for everything in it"


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence.

    Args:
        command: Name of the command.
        description: Sentence that describes it.
        options: Further arguments of `ArgumentParser`.
    """

    def __init__(self, command: str, description: str, **options: Any) -> None:
        super().__init__(f"cfn {command}", description=description, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Print the message and exit."""
        self.exit(2, f"cfn: {message} (see {self.prog} --help)\n")


def parse_hydra(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the parsed arguments of a command that uses Hydra, and the same arguments with all flags first.

    Users may put flags anywhere, but Hydra's own parser needs them before the overrides.
    """
    from hydra._internal.utils import get_args_parser  # slow to import, and other commands do not need it

    parser = Parser("train", "", parents=[get_args_parser()], add_help=False)
    options = parser.parse_intermixed_args(arguments)
    overrides, flags = list(options.overrides), []
    for argument in arguments:
        if argument in overrides:
            overrides.remove(argument)
        else:
            flags.append(argument)
    return options, [*flags, *options.overrides]


def positive(text: str) -> int:
    """Return a positive whole number."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Add the positional arguments PATH..."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="run folders, or folders above them")


def add_filter(parser: argparse.ArgumentParser, flag: str, text: str) -> None:
    """Add an option that chooses runs by KEY=VALUE.

    Args:
        parser: Parser of a command.
        flag: Name of the option.
        text: Explanation.
    """
    parser.add_argument(
        flag, nargs="+", action="extend", default=[], type=_filter(flag), metavar="KEY=VALUE", help=text
    )


def add_where(parser: argparse.ArgumentParser, text: str = "only runs with these values") -> None:
    """Add the option --where."""
    add_filter(parser, "--where", f"{text}; values separated by commas are alternatives")


def _filter(option: str) -> "Callable[[str], Filter]":
    """Return the parser of one KEY=VALUE of an option."""

    def parse(text: str) -> "Filter":
        from cfn.analysis.sides import Filter  # slow to import, and other commands do not need it

        key, equals, value = text.partition("=")
        if not (key and equals):
            raise argparse.ArgumentTypeError(f"{text} is not KEY=VALUE; name folders before {option}")
        return Filter(option, key, value)

    return parse


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add the option --trust."""
    parser.add_argument("--trust", action="append", default=[], metavar="NAME", help=TRUST)


def add_style(parser: argparse.ArgumentParser) -> None:
    """Add the options --stat and --seeds."""
    parser.add_argument(
        "--stat",
        choices=("iqm", "mean"),
        default="iqm",
        help="statistic over seeds: iqm, the interquartile mean with 95%% bootstrap intervals (default, except in "
        "figures of the paper); or mean, with standard errors as in the paper",
    )
    parser.add_argument("--seeds", action="store_true", help="also draw a thin line for each seed")


def add_score(parser: argparse.ArgumentParser) -> None:
    """Add the option --score."""
    parser.add_argument(
        "--score",
        choices=("eval", "train"),
        default="eval",
        help="returns to show: of evaluations (eval), or of training episodes, averaged between evaluations (train); "
        "default: eval, and in a figure of the paper the published ones",
    )


def add_error(parser: argparse.ArgumentParser) -> None:
    """Add the option --error."""
    parser.add_argument(
        "--error",
        choices=("mse", "rmse"),
        default="mse",
        help="count error to show: the mean squared error (mse) or its root (rmse); default: mse, and in Figure 3 of "
        "the paper the published rmse",
    )
