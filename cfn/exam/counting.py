"""Questions on counts: errors, the decay law, unseen states, noise, and the scale of the bonus."""

import math

import numpy as np

from cfn.errors import UsageError
from cfn.exam import measures, streams
from cfn.exam.base import Answer, Examiner
from cfn.exam.candidate import Candidate, FaultError
from cfn.types import Array

MIN_SPEARMAN, MAX_MSE = 0.9, 0.01
"""Pass marks of the question `counts`."""
EXPONENTS = (0.4, 0.6)
"""Range of exponents that passes; the truth is 0.5."""
MIN_AUC, UNSEEN = 0.9, (0.5, 1.5)
"""Pass marks of the question `unseen`: smallest AUC, and range of the mean bonus."""
MIN_NOISY_EXPONENT = 0.25
"""Pass mark of the question `noise`: half the true exponent."""
FACTORS = (0.8, 1.25)
"""Range of B sqrt(N) that passes."""
SEEN, NEVER = 60, 40
"""Numbers of visited and unvisited states in the question `unseen`."""
STATES_PER_COUNT = 2
"""Number of states with each count, in the questions `decay` and `noise`."""
LOOKS = 3
"""Number of random observations of each state whose novelty is averaged, in the question `noise`."""


def counts(examiner: Examiner) -> Answer:
    """Compare the bonus with 1 / sqrt(N) on four streams."""
    steps = examiner.sizes.counts
    makers = {"taxi": streams.taxi_walk, "one-hot": streams.zipf_one_hot, "blobs": streams.blobs}
    numbers: dict[str, float | None] = {}
    data, notes, found = {}, [], []
    for name in ("gridworld", *makers):
        try:
            stream = makers[name](steps, examiner.rng(name)) if name in makers else None
            candidate = examiner.walker if stream is None else examiner.trained(stream)
            states, visits = candidate.stream.counts()
            bonus = candidate.ask(states)
        except FaultError:  # the bonus fails the question, as it would fail any other
            raise
        except UsageError as error:  # observations that the bonus does not accept
            notes.append(f"{name}: {error}")
            continue
        measured = measures.errors(bonus, visits)
        found.append(measured)
        floor = candidate.bonus.report([(int(s),) for s in states], visits).get("bonus/floor_mse")
        numbers |= {f"{name}_{key}": value for key, value in measured.items()}
        numbers[f"{name}_floor"] = floor
        data[name] = points(visits, bonus)
    if not found:
        raise UsageError("; ".join(notes))
    numbers |= {key: float(np.mean([each[key] for each in found])) for key in found[0]}
    passed = all(each["spearman"] >= MIN_SPEARMAN and each["mse"] <= MAX_MSE for each in found)
    return Answer(numbers, passed, data, notes)


def decay(examiner: Examiner) -> Answer:
    """Fit B ~ N^-p on states with counts 1, 2, 4, ... up to the largest."""
    _, visits, bonus = _visited_by_powers(examiner, "decay", examiner.sizes.most, 0.0)
    exponent = measures.exponent(bonus, visits)
    return Answer({"exponent": exponent}, _within(exponent, EXPONENTS), points(visits, bonus))


def noise(examiner: Examiner) -> Answer:
    """Fit B ~ N^-p on images of which a part is random at every visit."""
    candidate, visits, first = _visited_by_powers(examiner, "noise", examiner.sizes.noise, examiner.noise)
    looks = [first, *(candidate.ask(range(len(visits))) for _ in range(LOOKS - 1))]
    bonus = np.mean(looks, axis=0)
    exponent = measures.exponent(bonus, visits)
    numbers: dict[str, float | None] = {
        "exponent": exponent,
        "spearman": measures.errors(bonus, visits)["spearman"],
        "share": streams.rows_of_noise(examiner.noise) / streams.GRID,
    }
    return Answer(numbers, exponent >= MIN_NOISY_EXPONENT, points(visits, bonus))


def _visited_by_powers(examiner: Examiner, name: str, most: int, noise: float) -> tuple[Candidate, Array, Array]:
    """Return a bonus that has seen states with 1, 2, 4, ..., `most` visits, these counts, and its novelty of them."""
    powers = [2**k for k in range(most.bit_length()) if 2**k < most] + [most]
    visits = np.repeat(powers, STATES_PER_COUNT)
    rng = examiner.rng(name)
    free_rows, needed_rows = streams.GRID - streams.rows_of_noise(noise), math.ceil(len(visits) / streams.GRID)
    if free_rows < needed_rows:
        most_noise = math.floor(100 * (1 - needed_rows / streams.GRID)) / 100
        raise UsageError(f"noise={noise}: the image has no room for {len(visits)} states; choose at most {most_noise}")
    places = rng.permutation(streams.GRID * free_rows)[: len(visits)]
    plain = streams.cells(name, streams.repeated(visits.tolist(), range(len(visits)), rng), noise)
    stream = streams.Stream(name, plain.space, lambda state, r: plain.look(int(places[state]), r), plain.visits)
    candidate = examiner.trained(stream)
    return candidate, visits, candidate.ask(range(len(visits)))


def unseen(examiner: Examiner) -> Answer:
    """Compare states that were never visited with states that were visited at least four times."""
    rng = examiner.rng("unseen")
    places = [int(place) for place in rng.permutation(streams.GRID**2)[: SEEN + NEVER]]
    shares = 1 / np.arange(1, SEEN + 1)
    visits = 4 + rng.multinomial(max(examiner.sizes.unseen - 4 * SEEN, 0), shares / shares.sum())
    stream = streams.cells("unseen", streams.repeated(visits.tolist(), places[:SEEN], rng))
    candidate = examiner.trained(stream)
    seen, never = candidate.ask(places[:SEEN]), candidate.ask(places[SEEN:])
    auc, mean = measures.separation(never, seen), float(never.mean())
    passed = auc >= MIN_AUC and _within(mean, UNSEEN)
    return Answer({"auc": auc, "bonus": mean}, passed, {"seen": seen.tolist(), "unseen": never.tolist()})


def scale(examiner: Examiner) -> Answer:
    """Return the factor between the bonus and 1 / sqrt(N)."""
    states, visits = examiner.walker.stream.counts()
    factors = examiner.walker.ask(states) * np.sqrt(visits)
    factor = measures.geometric_mean(factors)
    spread = float(np.std(np.log(factors))) if factor > 0 else None
    return Answer({"factor": factor, "spread": spread}, _within(factor, FACTORS), {"factors": factors.tolist()})


def points(visits: Array, bonus: Array) -> dict[str, list[float]]:
    """Return counts and bonuses as lists, to draw."""
    return {"counts": [int(n) for n in visits], "bonus": [float(b) for b in bonus]}


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]
