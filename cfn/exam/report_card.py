"""The report card of one bonus and one seed. A question that raises an error does not stop the others."""

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cfn.errors import UsageError
from cfn.exam.base import Examiner, Question
from cfn.exam.questions import QUESTIONS


def examine(examiner: Examiner, names: Sequence[str], tell: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Ask the named questions, and return the result of each as plain values.

    Args:
        examiner: Examiner of the bonus.
        names: Names of the questions.
        tell: Function that receives a line of text after each question.
    """
    results: dict[str, Any] = {}
    for name in names:
        results[name] = result = _asked(QUESTIONS[name], examiner)
        tell(_line(QUESTIONS[name], result))
    return results


def require_questions(names: Sequence[str]) -> list[str]:
    """Return question names in the order of the exam, all for an empty list; raise `UsageError` for an unknown name."""
    for name in names:
        if name not in QUESTIONS:
            raise UsageError(f"questions={name}: there is no such question; choose from {', '.join(QUESTIONS)}")
    return [name for name in QUESTIONS if name in names or not names]


def _asked(question: Question, examiner: Examiner) -> dict[str, Any]:
    try:
        answer = question.answer(examiner)
    except UsageError as error:
        return {"passed": False, "numbers": {}, "error": str(error)}
    except Exception as error:  # a bonus may raise anything
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        text = " ".join(f"the bonus raises {type(error).__name__}: {error} ({where})".split())
        return {"passed": False, "numbers": {}, "error": text}
    result = {"passed": answer.passed, "numbers": answer.numbers, "data": answer.data}
    return result | ({"notes": answer.notes} if answer.notes else {})


def _line(question: Question, result: dict[str, Any]) -> str:
    verdict = {True: "passed", False: "failed", None: "measured"}[result["passed"]]
    if "error" in result:
        return f"{question.name:<8} {verdict:<9} {result['error']}"
    value = result["numbers"][question.headline]
    return f"{question.name:<8} {verdict:<9} {'no number' if value is None else f'{value:.3g}'} ({question.unit})"
