"""Rows, pictures and configs in Trackio's own database, read back with its own reader."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.image import imsave

from cfn.runs.folder import Run

trackio = pytest.importorskip("trackio")
from trackio.sqlite_storage import SQLiteStorage  # noqa: E402

from cfn.tracking.trackio import TrackioTracker  # noqa: E402

CONFIG = {"steps": 10, "agent": {"_target_": "a.B", "lr": 0.5, "hidden": [3, 4]}, "compile": False, "device": None}


@pytest.fixture(autouse=True)
def storage(tmp_path, monkeypatch):
    """Keep the database of each test in its own folder: Trackio reads the variable when it is imported."""
    places = {"TRACKIO_DIR": tmp_path / "trackio", "MEDIA_DIR": tmp_path / "trackio" / "media"}
    for module in [module for name, module in sys.modules.items() if name.split(".")[0] == "trackio"]:
        for name in places.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, places[name])


def run_in(folder):
    folder.mkdir(exist_ok=True)
    return Run(folder, "env", "agent", "bonus", 0, "a setting", CONFIG)


def rows(project="cfn"):
    """The logs of each run of a project, by the name of the run."""
    return {run.name: SQLiteStorage.get_logs(project, run.name, run_id=run.id) for run in trackio.Api().runs(project)}


def test_it_holds_metrics_pictures_and_config(tmp_path, capsys):
    tracker = TrackioTracker(run_in(tmp_path / "run"), project="mine")
    tracker.log(5, {"eval/return": 0.5, "bonus/mse": 2.0})
    tracker.log(10, {"eval/return": 1.0})
    picture = np.random.default_rng(0).integers(255, size=(6, 7, 3)).astype(np.uint8)
    imsave(tmp_path / "scatter.png", picture)
    (tmp_path / "film.svg").write_text("<svg/>")
    tracker.log_pictures(10, {"scatter": tmp_path / "scatter.png", "film": tmp_path / "film.svg"})
    tracker.finish()
    ((name, logs),) = rows("mine").items()
    assert name.startswith("a setting seed=0 ")
    assert [(row["step"], row["eval/return"]) for row in logs if "eval/return" in row] == [(5, 0.5), (10, 1.0)]
    (drawn,) = [row["plots/scatter"] for row in logs if "plots/scatter" in row]
    assert (tmp_path / "trackio" / "media" / drawn["file_path"]).read_bytes()
    assert not any("plots/film" in row for row in logs)
    (of_run,) = trackio.Api().runs("mine")
    assert {key: of_run.config[key] for key in ("steps", "agent.lr", "compile")} == {
        "steps": 10, "agent.lr": 0.5, "compile": False,
    }  # fmt: skip
    assert capsys.readouterr().out == "", "the console belongs to the progress line"


def test_a_resumed_run_continues_its_rows_without_writing_them_twice(tmp_path):
    for first, last in ((1, 4), (3, 6)):  # killed after step 4, resumed from a checkpoint of step 2
        tracker = TrackioTracker(run_in(tmp_path / "run"))
        for step in range(first, last + 1):
            tracker.log(step, {"loss": float(step)})
        tracker.finish()
    (logs,) = rows().values()
    assert [(row["step"], row["loss"]) for row in logs] == [(step, float(step)) for step in range(1, 7)]


def test_runs_of_one_setting_and_seed_are_told_apart(tmp_path):
    for folder in ("first", "second"):
        tracker = TrackioTracker(run_in(tmp_path / folder))
        tracker.log(1, {"loss": 1.0})
        tracker.finish()
    assert len(rows()) == 2


def test_metrics_and_pictures_of_one_step_are_both_written(tmp_path):
    """Pictures follow the metrics of their step."""
    imsave(tmp_path / "map.png", np.zeros((2, 2, 3), np.uint8))
    tracker = TrackioTracker(run_in(tmp_path / "run"))
    tracker.log(3, {"loss": 1.0})
    tracker.log_pictures(3, {"map": tmp_path / "map.png"})
    tracker.finish()
    (logs,) = rows().values()
    assert {name for row in logs for name in row} >= {"loss", "plots/map"}


def test_a_run_without_rows_leaves_nothing(tmp_path):
    run = run_in(tmp_path / "run")
    TrackioTracker(run).finish()
    assert not run.files.trackio.exists()
    assert not (tmp_path / "trackio").exists()


def test_runs_of_a_sweep_write_to_one_project_at_once(tmp_path):
    """Three processes write 100 rows each to the same database."""
    script = (
        "import sys, pathlib\n"
        "from cfn.runs.folder import Run\n"
        "from cfn.tracking.trackio import TrackioTracker\n"
        "folder = pathlib.Path(sys.argv[1]); folder.mkdir()\n"
        "tracker = TrackioTracker(Run(folder, 'env', 'agent', 'bonus', int(folder.name), 'a setting', {'steps': 1}))\n"
        "[tracker.log(step, {'loss': float(step)}) for step in range(100)]\n"
        "tracker.finish()\n"
    )
    environment = {"TRACKIO_DIR": str(tmp_path / "trackio"), "PATH": "", "HOME": str(tmp_path)}
    words = [[sys.executable, "-c", script, str(tmp_path / str(seed))] for seed in range(3)]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for command in words]
    for process in processes:
        assert process.wait(60) == 0, process.stderr.read()
        process.stderr.close()
    assert [[row["loss"] for row in logs] for logs in rows().values()] == [[float(step) for step in range(100)]] * 3
