"""A clock for the parts of a program."""

import time
from collections.abc import Callable
from typing import Any


class Clock:
    """Measures how long each part of a program takes; time counts for the innermost part.

    Attributes:
        seconds: Seconds so far, by part.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._parts: list[str] = []
        self._since = 0.0

    def timed(self, part: str, function: Callable[..., Any], within: str | None = None) -> Callable[..., Any]:
        """Return a function whose time counts for a part.

        Args:
            part: Name of the part.
            function: Function to time.
            within: Part from which it must be called; elsewhere, its time counts for its caller. None: anywhere.
        """

        def wrapper(*arguments: Any, **keys: Any) -> Any:
            self._turn()
            self._parts.append(part if within is None or within in self._parts else self._parts[-1])
            try:
                return function(*arguments, **keys)
            finally:
                self._turn()
                self._parts.pop()

        return wrapper

    def watch(self, part: str, owner: object, *methods: str) -> None:
        """Replace methods of an object by timed ones."""
        for method in methods:
            setattr(owner, method, self.timed(part, getattr(owner, method)))

    def _turn(self) -> None:
        now = time.perf_counter()
        if self._parts:
            self.seconds[self._parts[-1]] = self.seconds.get(self._parts[-1], 0.0) + now - self._since
        self._since = now
