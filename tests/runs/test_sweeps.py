"""The record of a sweep."""

import json

import pytest
from folders import make_run

from cfn.errors import UsageError
from cfn.runs.sweeps import SweepRecord, find_sweeps, is_sweep


@pytest.fixture
def record(tmp_path):
    runs = [(tmp_path / "grid" / "random-count" / "now" / f"seed={seed}", [f"seed={seed}"]) for seed in (0, 1)]
    return SweepRecord.create(tmp_path / "sweeps" / "now", runs, "/my/conf", "fetch")


def test_a_record_is_read_as_it_was_written(record, tmp_path):
    for path in (record.files.folder, record.files.record, record.files.figure, record.files.plan):
        assert SweepRecord.read(path) == record
    assert find_sweeps(tmp_path) == [record]
    content = json.loads(record.files.plan.read_text())
    assert content["runs"][0]["folder"] == "grid/random-count/now/seed=0", "relative: outputs can be moved"


def test_a_run_is_not_started_or_failed_to_start_or_has_the_state_of_its_folder(record, tmp_path):
    first, second = record.runs
    first.write_error("no such key")
    assert (first.state, first.error, second.state) == ("failed to start", "no such key", "not started")
    first.write_error(None)
    assert first.state == "not started"
    made = make_run(tmp_path, state="stopped")
    record = record.extended([(made, ["bonus=cfn"])])
    assert SweepRecord.read(record.files.folder).runs[2].state == "stopped"
    assert [run.error_file.name for run in record.runs] == ["0.txt", "1.txt", "2.txt"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nothing", "is not the record of a sweep: JSONDecodeError"),
        ("[]", "is not the record of a sweep: TypeError"),
        ('{"runs": [{"folder": 3, "overrides": []}]}', "a folder is not a text"),
        ('{"runs": [{"folder": "a", "overrides": [1]}]}', "overrides are not a list of texts"),
        ('{"runs": [{"folder": "a", "overrides": ["hydra/launcher=mine"]}]}', "overrides of Hydra itself"),
    ],
)
def test_a_damaged_record_is_one_sentence(record, tmp_path, text, reason):
    record.files.plan.write_text(text)
    with pytest.raises(UsageError, match=reason):
        SweepRecord.read(record.files.folder)
    assert find_sweeps(tmp_path) == []


def test_a_sweep_of_an_older_version_has_no_list_of_runs(tmp_path):
    (tmp_path / "sweeps").mkdir()
    path = tmp_path / "sweeps" / "old.yaml"
    path.write_text("steps: 1\n")
    assert is_sweep(path)
    with pytest.raises(UsageError, match=r"has no record of its runs \(runs.json\): name the folder of its runs"):
        SweepRecord.read(path)
