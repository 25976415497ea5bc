"""Tables and figures of exams."""

import pytest

from cfn.analysis.exams import Exam, by_bonus, cell, details, notes, table
from cfn.analysis.figures.exam import PANELS, compare, one_page


def result(value, passed=True, **more):
    return {"numbers": {"exponent": value}, "passed": passed, "data": {"counts": [1, 4], "bonus": [1.0, 0.5]}, **more}


def exam(bonus="cfn", seed=0, **questions):
    return Exam(bonus, seed, "quick", questions)


def test_a_cell_has_mean_range_and_the_seeds_that_passed():
    assert cell([result(0.4), result(0.5, passed=False), result(0.6)], "decay") == "0.5 (0.4 to 0.6) [2/3]"
    assert cell([result(0.4)], "decay") == "0.4 [1/1]"
    assert cell([result(None, False), result(2.0)], "decay") == "2, no number in 1 of 2 [1/2]"
    assert cell([result(None, False)], "decay") == "no number [0/1]"
    assert cell([{"numbers": {}, "passed": False, "error": "no"}], "decay") == "error [0/1]"
    assert cell([{"numbers": {"visit_ms": 3.0}, "passed": None}], "cost") == "3"


def test_a_table_has_a_row_per_bonus_and_the_latest_exam_of_a_seed():
    exams = [exam(decay=result(0.1)), exam(decay=result(0.4)), exam("rnd", decay=result(1.0, False))]
    assert [sat[0].questions["decay"]["numbers"]["exponent"] for sat in by_bonus(exams).values()] == [0.4, 1.0]
    lines = table(exams).splitlines()
    assert lines[0] == "| bonus | seeds | decay: exponent |"
    assert lines[2:] == ["| cfn | 1 | 0.4 [1/1] |", "| rnd | 1 | 1 [0/1] |"]
    assert "| decay | exponent | 0.4 | 1 |" in details(exams)


def test_notes_are_said_once():
    exams = [exam(seed=seed, decay=result(0.5, notes=["blobs: no"])) for seed in (0, 1)]
    assert notes(exams) == ["cfn, decay: blobs: no"]


@pytest.mark.parametrize("bonus", [[1.0, 0.5], [0.0, 0.0]], ids=["positive", "zero"])
def test_every_panel_draws_what_the_exam_writes(bonus):
    points = {"counts": [1, 4], "bonus": bonus}
    data = {
        "counts": {"gridworld": points, "blobs": points},
        "decay": points,
        "unseen": {"seen": bonus, "unseen": [1.0, 1.0]},
        "speed": {"visits": [1, 2], "ratio": bonus},
        "memory": {"curve": bonus, "small": [], "truth": 0.2},
        "order": {"mixed": bonus, "sorted": bonus},
        "noise": points,
        "scale": {"factors": bonus},
        "cost": {},
    }
    numbers = {"observe_ms_1000": 1.0, "update_ms_1000": 2.0}
    sat = exam(**{name: {"numbers": numbers, "passed": True, "data": data[name]} for name in PANELS})
    page = one_page("cfn", [sat, sat])
    assert [axes.get_title() for axes in page.axes] == list(PANELS)
    assert all(axes.lines or axes.patches for axes in page.axes)
    other = exam("rnd", decay={"error": "no", "passed": False, "numbers": {}})
    both = compare({"cfn": [sat], "rnd": [other]})
    texts = [text.get_text() for axes in both.axes for text in axes.texts]
    assert texts.count("cannot answer") == 1
    assert texts.count("not asked") == 5
