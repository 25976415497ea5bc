"""Warnings of Gymnasium in the log, one line each."""

import logging
import re
import warnings
from typing import TextIO


class _Once(logging.Filter):
    """Lets each message pass once, also if a process that steps environments logs it again."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the message is new."""
        before = len(self.logged)
        self.logged.add(record.getMessage())
        return len(self.logged) > before


log = logging.getLogger(__name__)
_once = _Once()
log.addFilter(_once)

COLOUR = r"\x1b\[[\d;]*m"
"""Regular expression for the codes that colour the text of a terminal."""


class _ShowWarning:
    """Replacement of `warnings.showwarning`, which shows other warnings as before."""

    def __init__(self) -> None:
        self._before = warnings.showwarning

    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Log a warning of Gymnasium."""
        coloured = re.fullmatch(rf"{COLOUR}(?:WARN|ERROR): (.*?)(?:{COLOUR})?", str(message), re.S)
        if not coloured:
            self._before(message, category, filename, lineno, file, line)
        else:
            log.warning("Gymnasium: %s", " ".join(coloured[1].split()))


def log_warnings_of_gymnasium() -> None:
    """Log Gymnasium's warnings; by default Python prints them with colour codes, a file name and a line of code."""
    if not isinstance(warnings.showwarning, _ShowWarning):
        _once.logged.clear()
        warnings.showwarning = _ShowWarning()
