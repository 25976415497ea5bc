import pytest
from matplotlib.figure import Figure

from cfn.analysis.figures.common import show_steps


def labels(last):
    """Labels of the x axis of a figure with a curve up to this step; None: without a curve."""
    axes = Figure(layout="constrained").subplots()
    if last is not None:
        axes.plot([last / 5, last], [0, 1])
    show_steps(axes)
    if last is not None:
        axes.set_xlim(right=last)
    axes.figure.draw_without_rendering()
    return [label.get_text() for label in axes.get_xticklabels()]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (None, ["0", "1"]),
        (2, ["0", "1", "2"]),
        (200, ["0", "40", "80", "120", "160", "200"]),
        (1000, ["0", "200", "400", "600", "800", "1k"]),
        (7500, ["0", "1.5k", "3k", "4.5k", "6k", "7.5k"]),
        (1_000_000, ["0", "200k", "400k", "600k", "800k", "1M"]),
        (2_500_000, ["0", "500k", "1M", "1.5M", "2M", "2.5M"]),
        (200_000_000, ["0", "40M", "80M", "120M", "160M", "200M"]),
        (2_000_000_000, ["0", "400M", "800M", "1.2G", "1.6G", "2G"]),
    ],
)
def test_steps_are_whole_numbers_with_short_suffixes(last, expected):
    assert labels(last) == expected
