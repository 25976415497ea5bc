"""The line on all runs of a sweep."""

import json
import re
import time

from folders import make_run
from terminal import narrow_terminal

from cfn.launch.progress import shown, status_line
from cfn.runs import lock
from cfn.runs.sweeps import PlannedRun


def planned(tmp_path, seed, state):
    return PlannedRun(make_run(tmp_path, seed=seed, state=state), ())


def set_state(run, state):
    path = run.folder / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"state": state}))


def test_runs_are_counted_by_what_they_wait_for(tmp_path):
    states = ("finished", "running", "stopped", "pruned", "failed", "running")
    runs = [planned(tmp_path, seed, state) for seed, state in enumerate(states)]
    runs.append(PlannedRun(tmp_path / "nosuch", (), tmp_path / "error.txt"))
    with lock.hold(runs[1].folder / "lock", "a run"):
        line, scores = status_line(runs, {}).split("; last scores: ")
        assert line == "1 of 7 runs done, 1 running, 3 queued, 1 pruned, 1 failed"
        assert scores == "cfn seed 0: 1, cfn seed 1: 1"
        assert status_line(runs).startswith("1 of 7 runs done, 1 running, 1 queued, 2 stopped, 1 pruned, 1 failed")
    runs[6].write_error("a reason")
    assert "2 failed" in status_line(runs)


def test_a_run_that_is_launched_again_is_queued_until_it_begins(tmp_path, capsys):
    """A finished run may be extended, and a failed one tried again."""
    runs = [planned(tmp_path, seed, state) for seed, state in enumerate(("finished", "failed", "stopped"))]
    lines = []

    def wait_for(number):
        deadline = time.monotonic() + 60
        while len(lines) < number:
            assert time.monotonic() < deadline
            time.sleep(0.05)
            lines.extend(capsys.readouterr().out.splitlines())

    with shown(runs, every=0.05):
        wait_for(1)
        set_state(runs[0], "finished")
        wait_for(2)
    wait_for(3)
    assert lines[0] == "0 of 3 runs done, 0 running, 3 queued, 0 failed"
    assert lines[1].startswith("1 of 3 runs done, 0 running, 2 queued, 0 failed; last scores: cfn seed 0: 1")
    assert lines[-1].startswith("1 of 3 runs done, 0 running, 0 queued, 1 stopped, 1 failed")


def test_a_command_that_is_longer_than_the_terminal_can_be_copied(tmp_path, monkeypatch):
    """The live line below it is wrapped: rows that Rich does not count would stay on the screen."""
    terminal = narrow_terminal(monkeypatch)
    run = planned(tmp_path, 0, "finished")
    with shown([run], every=0.01):
        deadline = time.monotonic() + 60
        while "0 failed" not in terminal.getvalue():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        print(command := f"cfn resume {'a' * 90}")
    assert f"{command}\n" in terminal.getvalue()
    live, _, _ = terminal.getvalue().partition(command)
    rows = re.split(r"\r?\n|\r", re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", live))
    assert max(map(len, rows)) <= 40
