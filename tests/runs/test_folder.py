import json
import sys

import numpy as np
import pytest

from cfn.errors import UsageError
from cfn.runs.folder import Run, current_state, remove_if_empty, reset_peak_memory


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path / "a" / "b", "grid", "random", "count", 3, "grid/random-count", {"steps": 10})


def test_a_claimed_folder_has_its_records(run):
    run.claim({"hydra": {"job": {"name": "train"}}}, ["seed=3"])
    assert sorted(p.name for p in (run.folder / ".hydra").iterdir()) == ["config.yaml", "hydra.yaml", "overrides.yaml"]
    assert run.files.counts.is_dir()
    assert run.files.plots.is_dir()


@pytest.mark.parametrize("file", ["metrics.jsonl", "summary.json"])
def test_another_runs_folder_is_refused(run, file):
    run.folder.mkdir(parents=True)
    (run.folder / file).write_text("precious")
    with pytest.raises(UsageError, match="already holds a run"):
        run.claim({}, [])
    assert [(path.name, path.read_text()) for path in run.folder.iterdir()] == [(file, "precious")]


def test_a_summary_says_how_it_ended(run):
    run.claim({}, [])
    run.write_summary("running", 0, 0.0, {})
    run.write_summary("failed", 7, 1.26, {"a": 0.5}, "it broke")
    summary = json.loads((run.folder / "summary.json").read_text())
    assert summary["state"] == "failed"
    assert summary["error"] == "it broke"
    assert (summary["steps"], summary["total_steps"], summary["seconds"]) == (7, 10, 1.3)
    assert summary["metrics"] == {"a": 0.5}
    assert summary["memory_mb"] > 1
    assert not (run.folder / "summary.json.new").exists()


def test_the_folder_is_shown_from_where_one_stands(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run.shown == "a/b"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run.shown == str(tmp_path / "a" / "b")


def test_only_what_is_empty_and_below_outputs_is_removed(tmp_path):
    outputs = tmp_path / "outputs"
    one, other = (outputs / "env" / "agent-bonus" / "time" / f"seed={i}" for i in (0, 1))
    one.mkdir(parents=True)
    other.mkdir()
    (other / "metrics.jsonl").write_text("precious")
    remove_if_empty(one, outputs)
    remove_if_empty(other, outputs)
    assert not one.exists()
    assert (other / "metrics.jsonl").exists()
    (other / "metrics.jsonl").unlink()
    remove_if_empty(other, outputs)
    assert list(outputs.iterdir()) == [], "outputs itself stays"


def test_a_folder_that_the_user_named_stays(tmp_path):
    named = tmp_path / "mine" / "here"
    named.mkdir(parents=True)
    remove_if_empty(named, tmp_path / "outputs")
    assert named.is_dir()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forgets a process's peak of memory")
def test_the_memory_of_a_run_is_not_that_of_the_run_before_it_in_the_same_process(run):
    run.claim({}, [])

    def told():
        run.write_summary("running", 0, 0.0, {})
        return json.loads((run.folder / "summary.json").read_text())["memory_mb"]

    reset_peak_memory()  # that of other tests in this process, which may have needed more
    before = told()
    large = np.ones(2**25)  # 256 MiB
    with_it = told()
    del large
    assert with_it == told() > before
    reset_peak_memory()
    assert told() < with_it - 200


@pytest.mark.parametrize(
    ("state", "shown"), [("running", "killed"), ("finished", "finished"), ("stopped", "stopped"), (None, "killed")]
)
def test_a_run_marked_running_whose_lock_is_free_was_killed(run, state, shown):
    run.claim({}, [])
    summary = {"state": state} if state else {}
    assert current_state(run.folder, summary) == shown
    with run.lock():
        assert current_state(run.folder, summary) == (state or "running")
