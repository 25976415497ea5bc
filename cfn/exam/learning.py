"""Questions on learning: its speed, forgetting, the order of visits, and its cost."""

import time
from typing import Any

import gymnasium as gym
import numpy as np

from cfn import seeding
from cfn.errors import UsageError
from cfn.exam import measures, streams
from cfn.exam.base import Answer, Examiner
from cfn.exam.candidate import Candidate
from cfn.types import Array

OLD, NEW, NEW_SHARE = 40, 8, 0.2
"""Question `speed`: states visited from the start, states that appear later, and the share of visits to the latter."""
CHECKS = 30
"""Number of times that the bonus of the new states is compared with the truth."""
MAX_VISITS = 16
"""Pass mark of the question `speed`, in visits to a new state."""
KEPT, OTHERS, CURVE = 10, 60, 8
"""Question `memory`: states to remember, states visited afterwards, and points of the curve."""
MAX_DRIFT = 1.25
"""Pass mark of the question `memory`: growth factor of the bonus."""
ORDERED = 40
"""States of the question `order`."""
MAX_DIFFERENCE = 0.25
"""Pass mark of the question `order`: relative root mean square difference."""
TIMED = 50
"""Visits that are timed (question `cost`)."""
MAX_SECONDS = 900.0
"""Seconds after which the question `cost` measures no larger number of states."""


def speed(examiner: Examiner) -> Answer:
    """Count the visits until the bonus of new states stays within 20% of the truth, while old ones keep coming."""
    rng = examiner.rng("speed")
    places = [int(place) for place in rng.permutation(streams.GRID**2)[: OLD + NEW]]
    old, new = places[:OLD], places[OLD:]
    candidate = examiner.candidate(streams.cells("speed", []))
    candidate.see(rng.choice(old, examiner.sizes.before).tolist())
    drawn = rng.random(examiner.sizes.after) < NEW_SHARE
    later = np.where(drawn, rng.choice(new, examiner.sizes.after), rng.choice(old, examiner.sizes.after)).tolist()
    later[:NEW] = new  # from the first check on, each was visited
    visits, updates, ratios = [], [], []
    begun = candidate.updates

    def check(index: int) -> None:
        if (index + 1) % (examiner.sizes.after // CHECKS) == 0:
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


def memory(examiner: Examiner) -> Answer:
    """Measure how much the bonus of often visited states grows while only other states are visited."""
    curve = _kept(examiner, examiner.candidate(streams.cells("memory", [])))
    small, notes = None, []
    if examiner.make.has("capacity"):
        try:
            candidate = examiner.candidate(streams.cells("memory", []), capacity=examiner.sizes.capacity)
        except UsageError as error:  # such as batches that are larger than the small buffer
            notes.append(f"small buffer: {error}")
        else:
            small = _kept(examiner, candidate)
    drift = _drift(curve)
    numbers = {"drift": drift, "drift_small": None if small is None else _drift(small), "bonus": curve[-1]}
    data = {"curve": curve, "small": small or [], "truth": examiner.sizes.often**-0.5}
    return Answer(numbers, drift is not None and drift <= MAX_DRIFT, data, notes)


def _kept(examiner: Examiner, candidate: Candidate) -> list[float]:
    """Return the mean bonus of the states to remember: before the visits to others, and several times during them."""
    rng = examiner.rng("memory")
    places = [int(place) for place in rng.permutation(streams.GRID**2)[: KEPT + OTHERS]]
    kept, others = places[:KEPT], places[KEPT:]
    candidate.see(streams.repeated([examiner.sizes.often] * KEPT, kept, rng))
    curve = [measures.geometric_mean(candidate.ask(kept))]
    for visits in np.array_split(rng.choice(others, examiner.sizes.long), CURVE):
        candidate.see(visits.tolist())
        curve.append(measures.geometric_mean(candidate.ask(kept)))
    return curve


def _drift(curve: list[float]) -> float | None:
    """Return the last value divided by the smallest; None for a bonus that is 0."""
    return curve[-1] / min(curve) if min(curve) > 0 else None


def order(examiner: Examiner) -> Answer:
    """Compare two bonuses that saw the same visits, one in random order and one state by state."""
    rng = examiner.rng("order")
    places = [int(place) for place in rng.permutation(streams.GRID**2)[:ORDERED]]
    shares = 1 / np.arange(1, ORDERED + 1)
    counts = 1 + rng.multinomial(max(examiner.sizes.order - ORDERED, 0), shares / shares.sum())
    visits = streams.repeated(counts.tolist(), places, rng)
    mixed, sorted_ = (examiner.trained(streams.cells("order", each)).ask(places) for each in (visits, sorted(visits)))
    size = float(np.sqrt(np.mean((mixed**2 + sorted_**2) / 2)))
    difference = float(np.sqrt(np.mean((mixed - sorted_) ** 2))) / size if size > 0 else None
    passed = difference is not None and difference <= MAX_DIFFERENCE
    return Answer({"difference": difference}, passed, {"mixed": mixed.tolist(), "sorted": sorted_.tolist()})


def cost(examiner: Examiner) -> Answer:
    """Measure CPU milliseconds per visit and update, and bytes per distinct state."""
    pixels = streams.PIXELS
    space = gym.spaces.Box(0, 255, (pixels, pixels), np.uint8)

    def look(state: int, _: np.random.Generator) -> Array:
        return seeding.generator(state, "cost").integers(256, size=(pixels, pixels), dtype=np.uint8)

    candidate = examiner.candidate(streams.Stream("cost", space, look, []))
    numbers: dict[str, float | None] = {}
    started = time.perf_counter()
    seen = 0
    for distinct in examiner.sizes.distinct:
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
