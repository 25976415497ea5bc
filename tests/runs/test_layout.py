from pathlib import Path

import pytest

from cfn.runs.layout import CheckpointLayout, Layout, step_of


def test_every_path_is_in_the_folder():
    files = Layout(Path("run"))
    paths = [getattr(files, name) for name in dir(Layout) if isinstance(getattr(Layout, name), property)]
    paths += [files.count_table(5), files.plot("maps"), files.room(3), files.video(5)]
    assert len(paths) == len(set(paths)) >= 15
    assert all(path.is_relative_to("run") for path in paths)


def test_count_tables_are_sorted_and_other_files_left_out(tmp_path):
    files = Layout(tmp_path)
    files.counts.mkdir()
    for name in ("step_000000200.csv", "step_000000100.csv", "step_x.csv", "notes.csv", "step_000000300.csv.new"):
        (files.counts / name).touch()
    assert files.count_tables() == [files.count_table(100), files.count_table(200)]


def test_checkpoints_are_sorted_and_other_files_left_out(tmp_path):
    files = CheckpointLayout(tmp_path)
    for path in (
        files.manifest(20),
        files.manifest(3),
        files.small_arrays(files.manifest(3)),
        tmp_path / "step_a.json",
    ):
        path.touch()
    assert files.manifests() == [files.manifest(3), files.manifest(20)]
    assert set(files.files()) >= {files.manifest(3), files.small_arrays(files.manifest(3))}


@pytest.mark.parametrize(
    ("name", "step"), [("step_000000100.csv", 100), ("step_12.json", 12), ("step_-1.csv", None), ("steps.csv", None)]
)
def test_the_step_in_a_name(name, step):
    assert step_of(Path(name)) == step
