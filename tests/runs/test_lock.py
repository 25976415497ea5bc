import fcntl

import pytest

from cfn.errors import UsageError
from cfn.runs import lock


def test_one_holder_at_a_time(tmp_path):
    path = tmp_path / "lock"
    assert not lock.is_held(path), "there is no file yet"
    with lock.hold(path, "a run"):
        assert lock.is_held(path)
        assert path.read_text().startswith("process ")
        with pytest.raises(UsageError, match="a run is already running, in process "), lock.hold(path, "a run"):
            pass
    assert not lock.is_held(path)
    with lock.hold(path, "a run"):
        pass


def test_a_listing_that_looks_at_the_lock_does_not_stop_a_run(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    with path.open("w") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        waits = []
        monkeypatch.setattr(lock.time, "sleep", lambda wait: (waits.append(wait), fcntl.flock(looking, fcntl.LOCK_UN)))
        with lock.hold(path, "a run"):
            assert path.read_text().startswith("process ")
        assert waits == [lock.WAITS[0]]


def test_a_restarted_job_waits_for_the_lock_of_a_failed_node(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    waits = []
    with (tmp_path / "lock").open("w") as dead:
        fcntl.flock(dead, fcntl.LOCK_EX)
        release = lambda wait: (waits.append(wait), sum(waits) > 60 and fcntl.flock(dead, fcntl.LOCK_UN))  # noqa: E731
        monkeypatch.setattr(lock.time, "sleep", release)
        with lock.hold(tmp_path / "lock", "a run"):
            assert 60 < sum(waits) < 70
