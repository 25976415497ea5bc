"""Maps have each state in its place."""

import numpy as np
import pytest

from cfn.analysis.figures.maps import map_extent, map_figure, read_rooms, room_map_figure
from cfn.runs.folder import Run
from cfn.runs.reading import CountTable
from cfn.tracking.base import Tracker
from cfn.tracking.pictures import Pictures


@pytest.fixture
def table():
    counts = np.array([1.0, 4.0, 9.0])
    return CountTable(500, np.array([[0, 0], [2, 1], [1, 3]]), counts, counts**-0.5, np.array([0.9, 0.6, 0.2]))


def test_the_maps_put_each_state_in_its_place(table):
    figure = map_figure(table, "a title", map_extent(table, {"env": {"size": 4}}))
    visits, bonus = (axes.images[0].get_array() for axes in figure.axes[:2])
    assert visits.shape == (4, 4)
    assert visits[1, 2] == 4
    assert visits[3, 1] == 9
    assert bonus[3, 1] == 0.2
    assert visits.mask.sum() == 13, "the rest was never visited"
    assert figure.axes[0].images[0].origin == "lower"


def test_without_a_size_the_visited_part_is_mapped(table):
    moved = table._replace(states=table.states - 5)
    figure = map_figure(moved, "a title", map_extent(moved, {"env": {"size": 4}}))
    assert figure.axes[0].images[0].get_array().shape == (4, 3)
    assert figure.axes[0].images[0].get_extent() == [-5.5, -2.5, -5.5, -1.5]


def test_a_rooms_map_lies_over_an_image_of_it(tmp_path):
    """The player of Montezuma's Revenge, at (77, 235) of its first room, is drawn in the middle, a little above."""
    image = np.zeros((84, 84), np.uint8)
    image[3, 5] = 255
    run = Run(tmp_path, "montezuma", "rainbow", "cfn", 0, "montezuma/rainbow-cfn", {"steps": 1000})
    run.files.metrics.touch()
    pictures = Pictures(run, Tracker(run))
    pictures.evaluated(10, {1: image})
    pictures.evaluated(20, {1: image + 1, 7: image})
    rooms = read_rooms(tmp_path)
    assert (rooms[1] * 255 == image).all(), "the first stays"
    states = np.array([[77, 235, 1], [10, 200, 1], [90, 235, 7]])
    table = CountTable(500, states, np.array([4, 1, 9]), np.array([0.5, 1, 1 / 3]), np.array([0.4, 0.8, 0.3]))
    figure = room_map_figure(table, rooms, "title")
    panels = figure.axes[:4]
    assert [axes.get_title() for axes in panels] == ["room 1: 5 visits", "room 7: 9 visits", "", ""]
    visits, bonus = panels[0].collections[0], panels[2].collections[0]
    assert visits.get_offsets()[0].tolist() == pytest.approx([79.5 * 84 / 160, 82 * 84 / 210])
    assert visits.get_array().tolist() == [4, 1]
    assert bonus.get_array().tolist() == [0.4, 0.8]
