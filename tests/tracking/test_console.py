import logging
import sys
from types import SimpleNamespace

from terminal import narrow_terminal

from cfn.runs.folder import Run
from cfn.tracking import console
from cfn.tracking.console import Console, TerminalHandler


def lines(caplog):
    return [record.message for record in caplog.records if record.name == "cfn.tracking.console"]


class FourWaits:
    """Stands in for the event that ends the console's thread: it is set at the fifth time of asking."""

    def __init__(self):
        self.seconds = []

    def wait(self, seconds):
        self.seconds.append(seconds)
        return len(self.seconds) == 5

    def set(self):
        pass


class RunsWhenJoined:
    """Stands in for the console's thread."""

    def __init__(self, target, args, daemon):
        self.join = lambda: target(*args)

    def start(self):
        pass


def test_plain_lines_come_every_ten_seconds_even_while_nothing_happens(tmp_path, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    waits = FourWaits()
    monkeypatch.setattr(console, "threading", SimpleNamespace(Event=lambda: waits, Thread=RunsWhenJoined))
    shown = Console(Run(tmp_path, "e", "a", "b", 0, "s", {"steps": 1000}), live=False)
    shown.tick(250)
    shown.log(250, {"train/episodes": 3, "train/return": 0.5, "train/bonus": 0.01, "bonus/mse": 0.002})
    shown.finish()
    assert waits.seconds == [10] * 5
    *plain, last = lines(caplog)
    assert len(plain) == 4
    for line in (*plain, last):
        for part in ("step 250/1,000", "episodes 3", "return 0.5", "bonus 0.01", "error 0.002", "/s  "):
            assert part in line
    assert all("left 0:00:0" in line for line in plain)
    assert "left" not in last


def test_speed_and_time_left_are_those_of_the_last_minute(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(console, "threading", SimpleNamespace(Event=FourWaits, Thread=RunsWhenJoined))
    shown = Console(Run(tmp_path, "e", "a", "b", 0, "s", {"steps": 10_000}), live=False)
    assert shown._time_left() == "?"
    for seconds in range(10, 210, 10):
        clock.now = seconds
        shown.tick(90 * seconds if seconds <= 100 else 9_000 + seconds - 100)  # 90 steps a second, then 1
        shown._measure()
    assert "  1/s" in shown._status()
    assert shown._time_left() == "0:15:00"
    shown.tick(10_000)
    shown.evaluating(0.5)
    assert shown._time_left() == "?", "the last evaluation takes time, too"


def test_an_evaluation_is_shown_with_its_progress_and_counts_are_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(console, "threading", SimpleNamespace(Event=FourWaits, Thread=RunsWhenJoined))
    shown = Console(Run(tmp_path, "e", "a", "b", 0, "s", {"steps": 10_000}), live=False)
    shown.log(1, {"train/episodes": 1_110, "explore/states": 12_345, "train/return": 0.123456})
    assert shown._status().endswith("return 0.123  states 12,345  episodes 1,110")
    shown.log(1, {"train/return": -9_413.4})
    assert "return -9,413  " in shown._status()
    shown.log(1, {"train/return": 0.123456})
    shown.evaluating(0.25)
    assert "/s  evaluating 25%  return 0.123" in shown._status()
    shown.evaluated(1, {})
    assert "evaluating" not in shown._status()


def test_the_total_and_the_speed_make_room_for_what_matters(tmp_path, monkeypatch):
    monkeypatch.setattr(console, "threading", SimpleNamespace(Event=FourWaits, Thread=RunsWhenJoined))
    monkeypatch.setattr(Console, "_rate", 13_934.0)
    shown = Console(Run(tmp_path, "e", "a", "b", 0, "s", {"steps": 900_000}), live=False)
    shown.tick(106_275)
    shown.log(106_275, {"train/return": 0.0, "train/bonus": 0.000327, "bonus/mse": 0.00214, "explore/states": 441})
    assert shown._status(80) == "step 106,275/900,000  13,934/s  return 0  bonus 0.000327  error 0.00214"
    assert shown._status(70) == "step 106,275  13,934/s  return 0  bonus 0.000327  error 0.00214"
    assert shown._status(62) == "step 106,275  return 0  bonus 0.000327  error 0.00214"
    assert shown._status(50) == "step 106,275  return 0  bonus 0.000327"
    assert shown._status(5) == "step 106,275"


def test_a_live_line_on_a_terminal_leaves_one_line(tmp_path, caplog, capsys):
    caplog.set_level(logging.INFO)
    shown = Console(Run(tmp_path, "e", "a", "b", 0, "s", {"steps": 10}), live=True)
    shown.tick(10)
    shown.finish()
    assert len(lines(caplog)) == 1


def test_a_line_that_is_longer_than_the_terminal_can_be_copied(tmp_path, monkeypatch):
    terminal = narrow_terminal(monkeypatch)
    shown = Console(Run(tmp_path, "e", "a", "b", 0, "s", {"steps": 10}), live=True)
    print(command := f"cfn resume {'a' * 90}")
    shown.finish()
    assert f"{command}\n" in terminal.getvalue()


def test_log_lines_follow_stdout(capsys, monkeypatch):
    handler = TerminalHandler()
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "hello", None, None)
    handler.emit(record)
    assert capsys.readouterr().out == "hello\n"
    import io

    other = io.StringIO()
    monkeypatch.setattr(sys, "stdout", other)
    handler.emit(record)
    assert other.getvalue() == "hello\n"
