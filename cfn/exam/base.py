"""Interface of a question: what it receives (an examiner) and what it returns (an answer)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cfn import seeding
from cfn.exam.candidate import Candidate, Maker
from cfn.exam.sizes import Sizes
from cfn.exam.streams import Stream, gridworld_walk


@dataclass(frozen=True)
class Answer:
    """Answer of a bonus to a question.

    Attributes:
        numbers: Numbers by name; None where a number does not exist, such as the time of something that never happens.
        passed: Whether the bonus passes; None for a question without a pass mark.
        data: Arrays to draw, as lists.
        notes: Sentences on parts that could not be asked.
    """

    numbers: dict[str, float | None]
    passed: bool | None
    data: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class Examiner:
    """Examines one bonus with one seed: constructs the bonus for each question, and shows it streams of visits.

    Attributes:
        make: Constructs the bonus.
        seed: Seed of streams and bonuses.
        sizes: Sizes of the streams.
        noise: Fraction of the image that is random, in the question `noise`.
    """

    make: Maker
    seed: int
    sizes: Sizes
    noise: float = 0.1

    def rng(self, *name: str) -> np.random.Generator:
        """Return the random generator of a question; it is the same for all bonuses."""
        return seeding.generator(self.seed, "exam", *name)

    def candidate(self, stream: Stream, **keys: Any) -> Candidate:
        """Return a new bonus that has seen nothing yet; `keys` override its config."""
        return Candidate(self.make, stream, self.seed, **keys)

    def trained(self, stream: Stream) -> Candidate:
        """Return a new bonus that has seen all visits of a stream."""
        candidate = self.candidate(stream)
        candidate.see(stream.visits)
        return candidate

    @cached_property
    def walker(self) -> Candidate:
        """Bonus that has seen the gridworld walk; two questions share it."""
        return self.trained(gridworld_walk(self.sizes.counts, self.rng("gridworld")))


@dataclass(frozen=True)
class Question:
    """One question of the exam.

    Attributes:
        name: Name, as in `questions=NAME`.
        asks: The question, in words.
        headline: Name of its main number.
        unit: Meaning of the main number, with the value of a perfect bonus.
        mark: Condition of passing.
        answer: Function that asks the bonus of an examiner.
    """

    name: str
    asks: str
    headline: str
    unit: str
    mark: str
    answer: Callable[[Examiner], Answer]
