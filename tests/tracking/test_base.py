"""Several trackers at once."""

import pytest

from cfn.runs.folder import Run
from cfn.tracking.base import Guarded, Tracker, Trackers, several


class Ends(Tracker):
    """Notes its end, and fails if asked to."""

    def __init__(self, name, notes, error=None):
        self.name, self.notes, self.error = name, notes, error

    def finish(self, failed=False):
        self.notes.append((self.name, failed))
        if self.error:
            raise self.error


@pytest.mark.parametrize("failed", [False, True])
def test_every_tracker_is_finished_in_order_although_one_fails(failed):
    notes = []
    trackers = [Ends("first", notes), Ends("second", notes, ValueError("no network")), Ends("third", notes)]
    with pytest.raises(ValueError, match="no network"):
        Trackers(trackers).finish(failed)
    assert notes == [("first", failed), ("second", failed), ("third", failed)]


class Fails(Tracker):
    """Counts its calls, and fails in every one."""

    def __init__(self, run=None):
        self.calls = 0

    def log(self, step, metrics):
        self.calls += 1
        raise OSError("no space left")


def test_a_tracker_that_fails_is_left_alone(caplog):
    failing, notes = Fails(), []
    guarded = Guarded(failing)
    guarded.log(1, {})
    guarded.log(2, {})
    guarded.finish()
    assert failing.calls == 1
    assert "Fails failed (OSError: no space left): the run continues without it" in caplog.text
    Guarded(Ends("other", notes)).finish(True)
    assert notes == [("other", True)]


def test_several_trackers_are_built_from_their_configs(tmp_path):
    run = Run(tmp_path, "env", "agent", "bonus", 0, "a setting", {"steps": 1})
    none = {"_target_": "cfn.tracking.base.Tracker"}
    board = {"_target_": "cfn.tracking.tensorboard.TensorBoardTracker", "flush_seconds": 1}
    tracker = several(run, first=none, second=board)
    tracker.log(1, {"loss": 1.0})
    tracker.finish()
    assert list(run.files.tensorboard.iterdir())


def test_keys_of_several_trackers_are_checked_before_a_run(call):
    done = call("train", "tracker=several", "tracker.tensorboard.flush=1", "steps=10")
    assert done.returncode == 1
    assert (
        "tracker.tensorboard.flush is not a key: the keys of tracker.tensorboard=tensorboard are flush_seconds"
        in done.stderr
    )


@pytest.mark.thorough
def test_a_run_continues_although_its_tracker_fails(call, tmp_path, monkeypatch, run_folders):
    (tmp_path / "failing.py").write_text(
        "from cfn.tracking.base import Tracker\nclass Fails(Tracker):\n    def log(self, step, metrics): 1 / 0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    done = call("train", "tracker=none", "tracker._target_=failing.Fails", "steps=60", "env.max_steps=20")
    assert done.returncode == 0, done.stderr
    assert len((run_folders()[0] / "metrics.jsonl").read_text().splitlines()) >= 3
