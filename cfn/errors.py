"""Errors that a user can cause. Each is one sentence: what is wrong, with the key or path, and what to do."""

import contextlib
from collections.abc import Iterator

FAULTS = (Exception, SystemExit)
"""Errors of environments and users' modules: any exception, and sys.exit; Ctrl-C is none."""


class UsageError(Exception):
    """A request that cannot be fulfilled. The message is shown without a traceback."""


class BadValueError(UsageError, ValueError):
    """An impossible value of a constructor argument. `cfn train` adds the group's name to the key."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(key, sentence)
        self.key = key
        self.sentence = sentence

    def __str__(self) -> str:
        return f"{self.key}: {self.sentence}"


class AlreadyDoneError(UsageError):
    """A run that another process trains, or that is finished. A sweep leaves it alone.

    Args:
        fact: State of the run.
        hint: What to do about it.
    """

    def __init__(self, fact: str, hint: str) -> None:
        super().__init__(fact, hint)
        self.fact = fact
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.fact}: {self.hint}"


class BadInputError(UsageError, ValueError):
    """An input that a bonus or a wrapper cannot take: an observation, an observation space, a name."""


class WrongTypeError(UsageError, TypeError):
    """An object of the wrong type, such as a single environment where a vector environment is needed."""


def one_line(error: BaseException) -> str:
    """Return the type and the message of an error on one line, to quote it in a sentence."""
    return " ".join(f"{type(error).__name__}: {error}".split())


@contextlib.contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Turn the error of a missing package into a sentence that says how to install it.

    Args:
        extra: Optional part of the installation that brings the package.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(f"the package {error.name} is not installed: run pip install 'cfn-rl[{extra}]'") from error
