"""A terminal for tests of live lines."""

import io
import sys


class Terminal(io.StringIO):
    """Keeps what is written to it."""

    def isatty(self):
        return True


def narrow_terminal(monkeypatch):
    """Return a terminal of 40 columns that replaces stdout."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    return terminal
