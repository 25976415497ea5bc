"""What follows a command's word, where that is not Hydra's."""

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Refuses in a sentence, as all commands do.

    Args:
        command: The command's word.
        description: What it does.
    """

    def __init__(self, command: str, description: str) -> None:
        super().__init__(f"cfn {command}", description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and leave."""
        self.exit(2, f"cfn: {message} ({self.prog} --help shows what there is)\n")


def positive(text: str) -> int:
    """A whole number, 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number, 1 or more")
    return int(text)
