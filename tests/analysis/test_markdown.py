import math

import pytest

from cfn.analysis.markdown import markdown_table, three_digits, with_interval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"), (12.345, "12.3"), (999.4, "999"), (999.6, "1,000"), (-2500.4, "-2,500"), (2e9, "2e+09"),
        (1e-20, "0"), (-1e-20, "0"), (1e-5, "1e-05"),
    ],
)  # fmt: skip
def test_numbers(value, text):
    assert three_digits(value) == text


def test_an_unknown_interval_is_left_out():
    assert with_interval(1.5, -2, 3000) == "1.5 (-2 to 3,000)"
    assert with_interval(1.5, math.nan, math.nan) == "1.5"


def test_names_are_on_the_left_and_cannot_break_the_table():
    assert markdown_table(("name", "n"), [("a|b", "1")], names=1).splitlines() == [
        "| name | n |",
        "| --- | ---: |",
        "| a/b | 1 |",
    ]
