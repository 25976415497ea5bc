"""`cfn resume`: continue a run from its last checkpoint."""

from pathlib import Path

from cfn.cli.arguments import Parser, add_trust


def run(arguments: list[str]) -> None:
    """Run `cfn resume`."""
    parser = Parser("resume", "Continue a stopped or killed run exactly where its last checkpoint was written.")
    parser.add_argument("run", type=Path, nargs="?", metavar="RUN", help="run folder")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as steps=500000, to extend the run")
    add_trust(parser)
    options = parser.parse_intermixed_args(arguments)
    if options.run is None:
        parser.error("name a run folder")

    from cfn.tracking.pictures import Pictures  # PyTorch and matplotlib are slow to import, and help does not need them
    from cfn.training.resume import resume

    resume(options.run, options.overrides, options.trust, Pictures)
