import json

import numpy as np
import pytest
from folders import make_run
from matplotlib.image import imread

from cfn.analysis.figures import single_run
from cfn.runs.record import Record
from cfn.tracking.base import Tracker
from cfn.tracking.pictures import Pictures


class Mirror(Tracker):
    """Remembers what it receives."""

    def __init__(self):
        self.pictures, self.tables = [], []

    def log_pictures(self, step, pictures):
        self.pictures.append((step, sorted(pictures)))

    def log_counts(self, step, table):
        self.tables.append((step, table.name))


@pytest.fixture
def run(tmp_path):
    """A run of 1,000 steps whose last evaluation was at step 200."""
    return Record.read(make_run(tmp_path, tables=2))


@pytest.fixture
def empty(run):
    run.files.metrics.write_text("")
    return run


@pytest.fixture
def drawn(monkeypatch):
    """Titles of the drawings, which are not made."""
    titles = []
    monkeypatch.setattr(single_run, "draw_run", lambda folder, title: titles.append(title) or {})
    return titles


def train(tracker, first, last, every):
    for step in range(first, last + 1):
        tracker.tick(step)
        if step % every == 0:
            tracker.evaluated(step, {})


def test_pictures_that_are_not_wanted_are_not_drawn(run, drawn):
    run.config["pictures"] = False
    tracker = Pictures(run, Mirror())
    train(tracker, 201, 1000, 100)
    tracker.finish()
    assert drawn == []


def test_pictures_and_the_count_table_are_passed_on(run):
    mirror = Mirror()
    Pictures(run, mirror).evaluated(500, {})
    ((step, names),) = mirror.pictures
    assert step == 500
    assert {"learning_curve", "scatter", "count_error"} <= set(names)
    assert all(run.files.plot(name).is_file() for name in names)
    assert mirror.tables == [], "there is no table of step 500"
    run.files.metrics.write_text("")
    Pictures(run, mirror).evaluated(200, {})
    assert mirror.tables == [(200, "step_000000200.csv")]


@pytest.mark.thorough
@pytest.mark.parametrize(("every", "times"), [(5, 10), (200, 5)])
def test_they_are_drawn_at_most_ten_times(empty, drawn, every, times):
    tracker = Pictures(empty, Mirror())
    train(tracker, 1, 1000, every)
    tracker.finish()
    assert len(drawn) == times


def test_a_stopped_run_is_drawn_once_more_and_a_failed_one_is_not(empty, drawn):
    for failed, times in ((False, 2), (True, 1)):
        drawn.clear()
        tracker = Pictures(empty, Mirror())
        train(tracker, 1, 250, every=200)
        tracker.finish(failed=failed)
        assert len(drawn) == times


def test_a_resumed_run_continues_where_it_was(run, drawn):
    """Its last evaluation was at step 200, where two of ten drawings were due."""
    tracker = Pictures(run, Mirror())
    train(tracker, 201, 299, every=10)
    assert drawn == []
    train(tracker, 300, 300, every=10)
    assert len(drawn) == 1


def test_an_error_in_drawing_stops_nothing(empty, monkeypatch, caplog):
    monkeypatch.setattr(single_run, "draw_run", lambda folder, title: 1 / 0)
    mirror = Mirror()
    Pictures(empty, mirror).evaluated(500, {})
    assert "The pictures of step 500 could not be drawn (ZeroDivisionError" in caplog.text
    assert mirror.pictures == []


def test_rooms_are_saved_once_and_atomically(empty, monkeypatch):
    image = np.arange(16, dtype=np.uint8).reshape(4, 4) * 17
    tracker = Pictures(empty, Mirror())
    with monkeypatch.context() as patch:
        patch.setattr("cfn.runs.atomic.os.fsync", lambda _: 1 / 0)  # killed before it is on the disk
        with pytest.raises(ZeroDivisionError):
            tracker.evaluated(1, {3: image})
    assert not empty.files.room(3).exists()
    for seen in (image, np.zeros_like(image)):
        tracker.evaluated(1, {3: seen})
    assert (imread(empty.files.room(3))[..., 0] * 255).round().tolist() == image.tolist()


def test_the_summary_names_the_title(run, drawn):
    setting = json.loads(run.files.summary.read_text())["setting"]
    Pictures(run, Mirror()).evaluated(1000, {})
    assert drawn == [f"{setting}, seed {run.seed}"]
