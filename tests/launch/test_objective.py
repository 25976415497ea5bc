"""The objective of a study."""

import pytest
from folders import make_run

from cfn.errors import UsageError
from cfn.launch.objective import course, parse, value


@pytest.mark.parametrize(
    ("objective", "direction", "expected"),
    [
        ("eval/return", "maximize", 2),
        ("eval/return:last", "minimize", 2),
        ("eval/return:mean", "maximize", 3),
        ("eval/return:best", "maximize", 6),
        ("eval/return:best", "minimize", 1),
    ],
)
def test_the_objective_is_one_number_of_a_run(tmp_path, objective, direction, expected):
    run = make_run(tmp_path, returns=(1, 6, 2), mse=(1, 1, 1))
    assert value(run, objective, direction) == expected


@pytest.mark.parametrize(
    ("objective", "direction", "expected"),
    [
        ("eval/return:last", "maximize", [1, 6, 2]),
        ("eval/return:mean", "minimize", [1, 3.5, 3]),
        ("eval/return:best", "maximize", [1, 6, 6]),
        ("eval/return:best", "minimize", [1, 1, 1]),
        ("eval/nosuch:best", "minimize", []),
    ],
)
def test_the_course_of_an_objective_has_its_value_at_each_evaluation(tmp_path, objective, direction, expected):
    run = make_run(tmp_path, returns=(1, 6, 2), mse=(1, 1, 1))
    assert list(course(run, objective, direction).values()) == expected


def test_objectives_that_cannot_be(tmp_path):
    for objective in ("eval/return:worst", ":last", ""):
        with pytest.raises(UsageError, match=r"should be of the form METRIC:last\|mean\|best"):
            parse(objective)
    with pytest.raises(UsageError, match="has no metric eval/nosuch"):
        value(make_run(tmp_path), "eval/nosuch:last", "maximize")
