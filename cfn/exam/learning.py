"""Questions on learning: its speed, forgetting, the order of visits, and its cost."""

import time
from typing import Any

import gymnasium as gym
import numpy as np

from cfn import seeding
from cfn.exam import measures, streams
from cfn.exam.candidate import Candidate
from cfn.exam.paper import Answer, Paper
from cfn.types import Array

OLD, NEW, NEW_SHARE = 40, 8, 0.2
"""States visited from the start, states that appear later, and their share of the visits (question `speed`)."""
CHECKS = 30
"""Number of times that the new states are asked."""
MAX_VISITS = 16
"""Mark of the question `speed`, in visits to the new state."""
KEPT, OTHERS, CURVE = 10, 60, 8
"""States to remember, states visited afterwards, and points of the curve (question `memory`)."""
MAX_DRIFT = 1.25
"""Mark of the question `memory`: growth of the bonus."""
ORDERED = 40
"""States of the question `order`."""
MAX_DIFFERENCE = 0.25
"""Mark of the question `order`: relative root mean square difference."""
TIMED = 50
"""Visits that are timed (question `cost`)."""
MAX_SECONDS = 900.0
"""Time after which the question `cost` asks no larger number of states."""


def speed(paper: Paper) -> Answer:
    """Count the visits until the bonus of new states stays within 20% of the truth, while old ones keep coming."""
    rng = paper.rng("speed")
    places = [int(place) for place in rng.permutation(streams.GRID**2)[: OLD + NEW]]
    old, new = places[:OLD], places[OLD:]
    candidate = paper.candidate(streams.cells("speed", []))
    candidate.see(rng.choice(old, paper.sizes.before).tolist())
    drawn = rng.random(paper.sizes.after) < NEW_SHARE
    later = np.where(drawn, rng.choice(new, paper.sizes.after), rng.choice(old, paper.sizes.after)).tolist()
    later[:NEW] = new  # from the first check on, each was visited
    visits, updates, ratios = [], [], []
    begun = candidate.updates

    def check(index: int) -> None:
        if (index + 1) % (paper.sizes.after // CHECKS) == 0:
            counted = np.array([later[: index + 1].count(state) for state in new])
            ratios.append(float(np.median(candidate.ask(new) * np.sqrt(counted))))
            visits.append(float(counted.mean()))
            updates.append(candidate.updates - begun)

    candidate.see(later, check)
    first = measures.settled(np.array(ratios))
    numbers: dict[str, float | None] = {
        "visits": None if first is None else visits[first],
        "updates": None if first is None else float(updates[first]),
    }
    passed = first is not None and visits[first] <= MAX_VISITS
    return Answer(numbers, passed, {"visits": visits, "ratio": ratios})


def memory(paper: Paper) -> Answer:
    """Visit some states often, then only others: how much does the bonus of the former grow?"""
    curve = _kept(paper, paper.candidate(streams.cells("memory", [])))
    small = None
    if paper.make.has("capacity"):
        small = _kept(paper, paper.candidate(streams.cells("memory", []), capacity=paper.sizes.capacity))
    drift = _drift(curve)
    numbers = {"drift": drift, "drift_small": None if small is None else _drift(small), "bonus": curve[-1]}
    data = {"curve": curve, "small": small or [], "truth": paper.sizes.often**-0.5}
    return Answer(numbers, drift is not None and drift <= MAX_DRIFT, data)


def _kept(paper: Paper, candidate: Candidate) -> list[float]:
    """Return the bonus of the states to remember, before and while others are visited."""
    rng = paper.rng("memory")
    places = [int(place) for place in rng.permutation(streams.GRID**2)[: KEPT + OTHERS]]
    kept, others = places[:KEPT], places[KEPT:]
    candidate.see(streams.repeated([paper.sizes.often] * KEPT, kept, rng))
    curve = [measures.geometric_mean(candidate.ask(kept))]
    for visits in np.array_split(rng.choice(others, paper.sizes.long), CURVE):
        candidate.see(visits.tolist())
        curve.append(measures.geometric_mean(candidate.ask(kept)))
    return curve


def _drift(curve: list[float]) -> float | None:
    """Return the growth from the smallest value to the last; None for a bonus that is 0."""
    return curve[-1] / min(curve) if min(curve) > 0 else None


def order(paper: Paper) -> Answer:
    """Compare two bonuses that saw the same visits, one in random order and one state by state."""
    rng = paper.rng("order")
    places = [int(place) for place in rng.permutation(streams.GRID**2)[:ORDERED]]
    shares = 1 / np.arange(1, ORDERED + 1)
    counts = 1 + rng.multinomial(max(paper.sizes.order - ORDERED, 0), shares / shares.sum())
    visits = streams.repeated(counts.tolist(), places, rng)
    mixed, sorted_ = (
        paper.trained(streams.cells("order", each)).ask(places) for each in (visits, sorted(visits))
    )  # fmt: skip
    size = float(np.sqrt(np.mean((mixed**2 + sorted_**2) / 2)))
    difference = float(np.sqrt(np.mean((mixed - sorted_) ** 2))) / size if size > 0 else None
    passed = difference is not None and difference <= MAX_DIFFERENCE
    return Answer({"difference": difference}, passed, {"mixed": mixed.tolist(), "sorted": sorted_.tolist()})


def cost(paper: Paper) -> Answer:
    """Measure CPU milliseconds per visit and update, and bytes per distinct state."""
    pixels = streams.PIXELS
    space = gym.spaces.Box(0, 255, (pixels, pixels), np.uint8)

    def look(state: int, _: np.random.Generator) -> Array:
        return seeding.generator(state, "cost").integers(256, size=(pixels, pixels), dtype=np.uint8)

    candidate = paper.candidate(streams.Stream("cost", space, look, []))
    numbers: dict[str, float | None] = {}
    started = time.perf_counter()
    seen = 0
    for distinct in paper.sizes.distinct:
        names = ("observe_ms", "update_ms", "state_bytes", "total_bytes")
        if time.perf_counter() - started > MAX_SECONDS:
            numbers |= {f"{name}_{distinct}": None for name in names}
            continue
        half = max(seen, distinct // 2)
        candidate.see(range(seen, half))
        bytes_before = _bytes(candidate.bonus.state_dict())
        candidate.see(range(half, distinct - TIMED))
        observe, update = _timed(candidate, range(distinct - TIMED, distinct))
        total = _bytes(candidate.bonus.state_dict())
        grown = max(total - bytes_before, 0) / (distinct - half)
        seen = distinct
        numbers |= dict(zip((f"{name}_{distinct}" for name in names), (observe, update, grown, total), strict=True))
    last = [value for key, value in numbers.items() if key.startswith("observe_ms") and value is not None][-1]
    updates = [value for key, value in numbers.items() if key.startswith("update_ms") and value is not None]
    numbers["visit_ms"] = last + updates[-1] / candidate.bonus.update_period
    return Answer(numbers, None)


def _timed(candidate: Candidate, states: range) -> tuple[float, float]:
    """Visit states and return the median CPU milliseconds of `observe` and of `update`."""
    bonus, seconds = candidate.bonus, {"observe": [0.0], "update": [0.0]}
    methods = {name: getattr(bonus, name) for name in seconds}

    def timing(name: str) -> Any:
        def timed(*arguments: Any) -> Any:
            begun = time.process_time()  # other programs on the machine do not count
            result = methods[name](*arguments)
            seconds[name].append(time.process_time() - begun)
            return result

        return timed

    try:
        for name in seconds:
            setattr(bonus, name, timing(name))
        candidate.see(states)
    finally:
        for name in seconds:
            delattr(bonus, name)
    observe, update = (1e3 * float(np.median(times[1:] or [0.0])) for times in seconds.values())
    return observe, update


def _bytes(state: Any) -> int:
    """Return the bytes of all arrays in a nested state."""
    if isinstance(state, dict):
        return sum(_bytes(value) for value in state.values())
    if isinstance(state, list | tuple):
        return sum(_bytes(value) for value in state)
    return int(getattr(state, "nbytes", 8))
