"""The record of a sweep."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from folders import make_run

from cfn.errors import UsageError
from cfn.runs.sweeps import SweepRecord, find_sweeps, is_sweep, new_sweep, outputs_around


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


def test_sweeps_that_begin_in_the_same_second_have_folders_of_their_own(tmp_path):
    def begin(number):
        with new_sweep(tmp_path / "outputs") as folder:
            (folder / "mine").write_text(str(number))
        return folder

    with ThreadPoolExecutor(3) as pool:
        folders = list(pool.map(begin, range(3)))
    assert [(folder / "mine").read_text() for folder in folders] == ["0", "1", "2"]


@pytest.mark.parametrize("exists", [False, True])
def test_a_sweep_that_cannot_begin_leaves_nothing(tmp_path, exists):
    outputs = tmp_path / "outputs"
    if exists:
        outputs.mkdir()
    with pytest.raises(UsageError), new_sweep(outputs):
        raise UsageError("no such key")
    assert list(tmp_path.rglob("*")) == ([outputs] if exists else [])


def test_folders_of_runs_belong_to_the_outputs_with_their_sweeps(tmp_path):
    """Jobs that were submitted for a part of the outputs are known to commands on all of them."""
    run = make_run(tmp_path / "outputs")
    assert outputs_around(run.parent) == run.parent
    (tmp_path / "outputs" / "sweeps").mkdir()
    assert {outputs_around(path) for path in (run, *run.parents[:4])} == {tmp_path / "outputs"}
    assert outputs_around(tmp_path) == tmp_path
