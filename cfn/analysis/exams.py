"""Results of `cfn exam`: reading them, the table over seeds, and the files of the report."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cfn.analysis.markdown import markdown_table
from cfn.errors import UsageError
from cfn.numbers import readable

EXAM_FILE = "exam.json"
"""File with the results of one bonus and one seed."""
HEADLINES = {
    "counts": ("mse", "error"),
    "decay": ("exponent", "exponent"),
    "unseen": ("auc", "AUC"),
    "speed": ("visits", "visits"),
    "memory": ("drift", "growth"),
    "order": ("difference", "difference"),
    "noise": ("exponent", "exponent"),
    "scale": ("factor", "factor"),
    "cost": ("visit_ms", "CPU ms per visit"),
}
"""Main number of each question, and its name in the table."""
MISSING = "no number"
"""Text for a number that does not exist: the event never happened, or the number is a ratio of zeros."""


class Exam(NamedTuple):
    """Results of one bonus and one seed.

    Attributes:
        bonus: Name of the bonus, with the keys that were given.
        seed: Seed.
        preset: Size of the exam.
        questions: Results by question.
    """

    bonus: str
    seed: int
    preset: str
    questions: Mapping[str, Any]


def read_exams(paths: Iterable[Path]) -> tuple[list[Exam], list[str]]:
    """Return all exams in and below folders, oldest first, and sentences on files that cannot be read."""
    exams, problems = [], []
    for path in paths:
        files = [path] if path.is_file() else sorted(path.rglob(EXAM_FILE), key=_written)
        for file in files:
            try:
                record = json.loads(file.read_text(encoding="utf-8"))
                exams.append(Exam(*(record[name] for name in Exam._fields)))
            except (OSError, ValueError, KeyError, TypeError) as error:
                problems.append(f"{file} is left out: it is not the result of an exam ({type(error).__name__})")
    if not exams:
        raise UsageError("; ".join(problems) or f"there is no {EXAM_FILE} in {', '.join(map(str, paths))}")
    return exams, problems


def _written(path: Path) -> tuple[int, Path]:
    """Return the time at which a file was written, to sort by, and its path."""
    return path.stat().st_mtime_ns, path


def by_bonus(exams: Sequence[Exam]) -> dict[str, list[Exam]]:
    """Return the exams of each bonus, one per seed, in the order in which bonuses appear.

    Exams of the same bonus and seed are merged, each question from the latest one. Presets are not mixed: if there are
    several, they are part of the names.
    """
    several = len({exam.preset for exam in exams}) > 1
    groups: dict[str, dict[int, Exam]] = {}
    for exam in exams:
        name = f"{exam.bonus} preset={exam.preset}" if several else exam.bonus
        seeds = groups.setdefault(name, {})
        earlier = seeds[exam.seed].questions if exam.seed in seeds else {}
        seeds[exam.seed] = exam._replace(bonus=name, questions={**earlier, **exam.questions})
    return {bonus: [seeds[seed] for seed in sorted(seeds)] for bonus, seeds in groups.items()}


def table(exams: Sequence[Exam]) -> str:
    """Return a Markdown table: one row per bonus, one column per question, mean and range over seeds."""
    groups = by_bonus(exams)
    asked = [name for name in HEADLINES if any(name in exam.questions for exam in exams)]
    header = ["bonus", "seeds", *(f"{name}: {HEADLINES[name][1]}" for name in asked)]
    lines = []
    for bonus, taken in groups.items():
        results = [[exam.questions[name] for exam in taken if name in exam.questions] for name in asked]
        lines.append([bonus, str(len(taken)), *(cell(each, name) for each, name in zip(results, asked, strict=True))])
    return markdown_table(header, lines, 1)


def cell(results: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return the main number of a question over seeds: mean, range, and the number of seeds that passed.

    Args:
        results: Result of each seed.
        name: Question.
    """
    if not results:
        return ""
    values = [result["numbers"].get(HEADLINES[name][0]) for result in results]
    known = [float(value) for value in values if value is not None]
    errors = sum("error" in result for result in results)
    if known:
        text = readable(sum(known) / len(known))
        if len(known) > 1 and min(known) != max(known):
            text += f" ({readable(min(known))} to {readable(max(known))})"
        if len(known) < len(values):
            text += f", {MISSING} in {len(values) - len(known) - errors} of {len(values)}"
    else:
        text = "error" if errors else MISSING
    if all(result["passed"] is None for result in results):
        return text
    passed = sum(bool(result["passed"]) for result in results)
    return f"{text} [{passed}/{len(results)}]"


def details(exams: Sequence[Exam]) -> str:
    """Return a Markdown table of all numbers of all questions, one column per bonus, means over seeds."""
    groups = by_bonus(exams)
    rows: dict[tuple[str, str], dict[str, list[float]]] = {}
    for bonus, taken in groups.items():
        for exam in taken:
            for question, result in exam.questions.items():
                for number, value in result["numbers"].items():
                    column = rows.setdefault((question, number), {}).setdefault(bonus, [])
                    column += [] if value is None else [float(value)]
    lines = [
        [question, number, *(_mean(columns.get(bonus)) for bonus in groups)]
        for (question, number), columns in rows.items()
    ]
    return markdown_table(["question", "number", *groups], lines, 2)


def _mean(values: Sequence[float] | None) -> str:
    if values is None:
        return ""
    return readable(sum(values) / len(values)) if values else MISSING


def notes(exams: Sequence[Exam]) -> list[str]:
    """Return the notes of all exams, sentences on parts that could not be asked, each once."""
    found = []
    for exam in (exam for taken in by_bonus(exams).values() for exam in taken):
        for question, result in exam.questions.items():
            texts = [result["error"]] if "error" in result else result.get("notes", [])
            found += [f"{exam.bonus}, {question}: {text}" for text in texts]
    return list(dict.fromkeys(found))


def write_reports(exams: Sequence[Exam], folder: Path) -> str:
    """Write `exam.md`, a figure per bonus, and a figure that compares several bonuses; return the table as text."""
    from cfn.analysis.figures.common import save
    from cfn.analysis.figures.exam import compare, one_page  # matplotlib is slow to import

    folder.mkdir(parents=True, exist_ok=True)
    groups = by_bonus(exams)
    text = f"{table(exams)}\n\nMean (smallest to largest) over seeds [seeds that passed].\n"
    text += "".join(f"\n- {note}" for note in notes(exams)) + ("\n" if notes(exams) else "")
    (folder / "exam.md").write_text(f"{text}\n{details(exams)}\n", encoding="utf-8")
    paths = [folder / "exam.md"]
    for bonus, taken in groups.items():
        name = "".join(letter if letter.isalnum() or letter in "._-=" else "-" for letter in bonus)
        paths.append(save(one_page(bonus, taken), folder / f"{name}.png"))
    if len(groups) > 1:
        paths.append(save(compare(groups), folder / "comparison.png"))
    return text + "\n" + "\n".join(map(str, paths)) + "\n"
