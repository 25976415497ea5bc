"""Sizes of the exam: `preset=quick` (the default, minutes on one core) and `preset=thorough`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Numbers of visits and states in each question.

    Attributes:
        counts: Visits per stream of the question `counts`.
        most: Largest count of the question `decay`.
        unseen: Visits of the question `unseen`.
        before: Visits before new states appear, in the question `speed`.
        after: Visits from the moment when new states appear, in the question `speed`.
        often: Visits to each state to remember, in the question `memory`.
        long: Visits to other states afterwards, in the question `memory`.
        capacity: Capacity of the replay buffer that is too small for all visits, in the question `memory`.
        order: Visits of the question `order`, shown to two copies of the bonus.
        noise: Largest count of the question `noise`.
        distinct: Numbers of distinct states at which the question `cost` measures.
    """

    counts: int = 2000
    most: int = 512
    unseen: int = 1200
    before: int = 600
    after: int = 1200
    often: int = 40
    long: int = 1000
    capacity: int = 600
    order: int = 800
    noise: int = 128
    distinct: tuple[int, ...] = (1000,)


PRESETS = {
    "quick": Sizes(),
    "thorough": Sizes(
        counts=20_000, most=1000, unseen=8000, before=4000, after=8000, often=100, long=20_000, capacity=3000,
        order=6000, noise=1000, distinct=(1000, 10_000, 100_000),
    ),
}  # fmt: skip
"""Sizes by preset."""
