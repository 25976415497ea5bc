"""Captions and legends are below the panels and overlap with nothing."""

import pytest
from matplotlib.figure import Figure

from cfn.analysis.figures.legends import add_below, label_with_seeds, wrap_label


def panels(labels=("a", "b"), columns=2, width=6.0):
    figure = Figure(figsize=(width, 4), layout="constrained")
    for axes in figure.subplots(1, columns, squeeze=False)[0]:
        axes.set_xlabel("x")
        for label in labels:
            axes.plot([0, 1], label=label)
    return figure


@pytest.mark.parametrize("labels", [("a", "b"), [f"a setting with a long name, number={i}" for i in range(9)]])
@pytest.mark.parametrize("width", [4.0, 11.0])
def test_caption_legend_and_panels_are_below_each_other(labels, width):
    figure = panels(labels, width=width)
    add_below(figure, "mean over 3 seeds", "returns of evaluations, " + "averaged over something, " * 4 + "and more")
    figure.draw_without_rendering()
    (caption,), (legend,) = figure.texts, figure.legends
    text, entries = caption.get_window_extent(), legend.get_window_extent()
    assert text.y0 >= 0
    assert text.y1 <= entries.y0
    assert 0 <= text.x0 < text.x1 <= figure.bbox.x1
    assert all(entries.y1 <= axes.get_tightbbox().y0 for axes in figure.axes)


def test_the_caption_has_whole_sentences():
    figure = panels()
    add_below(figure, "mean over 3 seeds", "N(s): arrivals in s", legend=False)
    assert figure.texts[0].get_text() == "Mean over 3 seeds. N(s): arrivals in s."
    assert figure.legends == []


def test_a_label_of_several_panels_is_in_the_legend_once():
    figure = panels(("a", "b"), columns=3)
    add_below(figure, "one")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    without = panels(())
    add_below(without, "one")
    assert without.legends == []


def test_long_labels_are_broken_after_commas():
    assert wrap_label("CFN, a=1, b=2", 8) == "CFN, a=1,\nb=2"
    assert wrap_label("a_name_longer_than_the_line, b=2", 8) == "a_name_longer_than_the_line,\nb=2"


def test_seeds_are_counted_in_labels():
    assert [label_with_seeds("CFN", *n) for n in ((1, 1), (3, 3), (2, 3))] == [
        "CFN (1 seed)",
        "CFN (3 seeds)",
        "CFN (2 of 3 seeds)",
    ]
