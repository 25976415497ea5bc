"""Clocks: the speed of training, and the time that each part of a program takes."""

import time
from collections.abc import Callable
from typing import Any

ENOUGH_STEPS = 100
"""Steps whose time tells how long others will take; the first ones of a process are slow."""


class Clock:
    """Measures the time of each part of a program; nested calls count for the innermost part only.

    Attributes:
        seconds: Seconds so far, by part.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._parts: list[str] = []
        self._since = 0.0

    def timed(self, part: str, function: Callable[..., Any], within: str | None = None) -> Callable[..., Any]:
        """Wrap a function, so that its time counts for a part.

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


class Stopwatch:
    """Measures the speed of training, without evaluations."""

    def __init__(self, step: int) -> None:
        self.restart(step)

    def restart(self, step: int) -> None:
        """Start measuring at this step."""
        self._step, self._start = step, time.perf_counter()

    def rate(self, step: int) -> float:
        """Return the steps per second since the last restart."""
        return (step - self._step) / max(time.perf_counter() - self._start, 1e-9)

    def seconds_per_step(self, step: int) -> float | None:
        """Return the seconds per step since the last restart; None if they were too few to tell."""
        return 1 / self.rate(step) if step - self._step >= ENOUGH_STEPS else None
