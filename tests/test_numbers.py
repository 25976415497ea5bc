import pytest

from cfn.numbers import readable


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"), (12.345, "12.3"), (999.4, "999"), (999.6, "1,000"), (-2500.4, "-2,500"), (2e9, "2e+09"),
        (1e-20, "0"), (-1e-20, "0"), (1e-5, "1e-05"), (-10_000.0, "-10,000"), (123_456_789.0, "123,456,789"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits_or_are_whole(value, text):
    assert readable(value) == text


def test_more_digits_on_request():
    assert readable(0.43756, digits=4) == "0.4376"
