import logging
import sys
import time

from cfn.run import Run
from cfn.tracking.console import PLAIN_SECONDS, Console, TerminalHandler


def lines(caplog):
    return [record.message for record in caplog.records if record.name == "cfn.tracking.console"]


def test_plain_lines_come_even_while_nothing_happens(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    console = Console(Run(tmp_path, "e", "a", "b", 0, "s", {"steps": 1000}), live=False, every=0.05)
    console.tick(250)
    console.log(250, {"train/episodes": 3, "train/return": 0.5, "train/bonus": 0.01, "bonus/mse": 0.002})
    time.sleep(0.5)
    console.finish()
    assert len(lines(caplog)) >= 4
    for part in (
        "step 250/1,000",
        "episodes 3",
        "return 0.5",
        "bonus 0.01",
        "error 0.002",
        "/s  ",
        "left 0:00:0",
    ):
        assert part in lines(caplog)[2]
    assert "left" not in lines(caplog)[-1]


def test_a_line_comes_at_least_every_ten_seconds():
    assert PLAIN_SECONDS <= 10


def test_a_live_line_on_a_terminal_leaves_one_line(tmp_path, caplog, capsys):
    caplog.set_level(logging.INFO)
    console = Console(Run(tmp_path, "e", "a", "b", 0, "s", {"steps": 10}), live=True)
    console.tick(10)
    console.finish()
    assert len(lines(caplog)) == 1


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
