import math

from cfn.analysis.markdown import markdown_table, with_interval


def test_an_unknown_interval_is_left_out():
    assert with_interval(1.5, -2, 3000) == "1.5 (-2 to 3,000)"
    assert with_interval(1.5, math.nan, math.nan) == "1.5"


def test_names_are_on_the_left_and_cannot_break_the_table():
    assert markdown_table(("name", "n"), [("a|b", "1")], names=1).splitlines() == [
        "| name | n |",
        "| --- | ---: |",
        "| a/b | 1 |",
    ]
