"""`cfn eval`: play with the agent of a run's last checkpoint."""

from pathlib import Path

from cfn.cli.arguments import Parser, add_trust, positive


def run(arguments: list[str]) -> None:
    """Run `cfn eval`."""
    parser = Parser("eval", "Play with the agent of a run's last checkpoint.")
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("--episodes", type=positive, default=5, metavar="N", help="number of episodes (5)")
    parser.add_argument("--video", action="store_true", help="film them: RUN/videos/step_XXXXXXXXX.mp4")
    add_trust(parser)
    options = parser.parse_args(arguments)

    from cfn.training.play import play  # PyTorch is slow to import, and help does not need it

    play(options.run, options.episodes, options.video, options.trust)
