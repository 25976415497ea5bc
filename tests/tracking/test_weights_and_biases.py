"""W&B for real: offline runs read back from their files, and a server that is not there."""

import json
import logging
import socket
from dataclasses import replace

import pytest
import wandb
from wandb_file import history, records, wait_for_the_end

from cfn import naming
from cfn.runs.folder import Run
from cfn.tracking.weights_and_biases import WandbTracker, _resumed


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, "grid", "random", "count", 3, "grid/random-count", {"steps": 10, "env": {"size": 4}})


def warnings(caplog):
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def the_file(tmp_path):
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    return path


def test_an_offline_run_holds_curves_pictures_table_and_config(cfn, tmp_path):
    done = cfn(
        "train", "agent=random", "bonus=count", "steps=400", "eval.every=200", "env.size=7", "tracker.tags=[mine]"
    )
    assert done.returncode == 0, done.stderr
    (folder,) = (path.parent for path in tmp_path.rglob("metrics.jsonl"))
    path = the_file(folder)
    assert f"W&B: offline. To upload the run:  wandb sync {path.parent.relative_to(tmp_path)}" in done.stdout

    rows = list(history(path))
    mirrored = [row for row in rows if not any(key.startswith(("plots/", "counts")) for key in row)]
    written = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert mirrored == written

    pictures = [row for row in rows if "plots/scatter" in row]
    assert [row["step"] for row in pictures] == [200, 400]
    for name in ("learning_curve", "scatter", "maps"):
        image = pictures[-1][f"plots/{name}"]
        assert image["_type"] == "image-file"
        assert (path.parent / "files" / image["path"]).read_bytes()[:4] == b"\x89PNG"
    (*_, table) = (row["counts"] for row in rows if "counts" in row)
    content = json.loads((path.parent / "files" / table["path"]).read_text())
    assert content["columns"] == ["state", "count", "true_bonus", "predicted_bonus", "arrivals"]
    assert len(content["data"]) == written[-1]["explore/states"]

    (start,) = (record.run for record in records(path) if record.HasField("run"))
    assert start.run_group == "gridworld_small/random-count env.size=7"
    assert set(start.tags) == {"gridworld_small", "random", "count", "mine"}
    config = {item.key: json.loads(item.value_json) for item in start.config.update}
    assert config["env"]["size"] == 7
    assert config["steps"] == 400
    metrics = [record.metric for record in records(path) if record.HasField("metric")]
    assert any(metric.glob_name == "*" and metric.step_metric == "step" for metric in metrics)


def test_a_long_setting_keeps_its_end_and_the_seed(run, monkeypatch):
    started = []
    monkeypatch.setattr(WandbTracker, "_start", lambda self, mode, arguments: started.append(arguments))
    setting = naming.setting(
        {"env": "e", "agent": "a", "bonus": "b"}, {}, [f"bonus.a_long_key_{i}=0" for i in range(9)]
    )
    WandbTracker(replace(run, setting=setting))
    WandbTracker(replace(run, setting="x" * 200))
    assert (started[0]["group"], started[0]["name"]) == (setting, f"{setting} seed=3")
    assert setting.endswith(")")
    assert (len(started[1]["group"]), started[1]["name"]) == (128, "x" * 121 + " seed=3")


def test_groups_join_seeds(run, tmp_path):
    WandbTracker(run).finish()
    wait_for_the_end(the_file(tmp_path))
    (start,) = (record.run for record in records(the_file(tmp_path)) if record.HasField("run"))
    assert (start.run_group, start.display_name) == ("grid/random-count", "grid/random-count seed=3")


def test_a_server_that_is_not_there_does_not_stop_the_run(cfn, run_folders):
    with socket.socket() as closed:  # a port where nobody listens
        closed.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{closed.getsockname()[1]}"
    done = cfn("train", "steps=50", WANDB_BASE_URL=server, WANDB_API_KEY="0" * 40)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("W&B cannot be reached") == 1
    assert "W&B: offline" in done.stdout
    (folder,) = run_folders()
    assert any("eval/return" in row for row in history(the_file(folder)))


def test_a_failure_in_the_middle_is_told_once_and_then_w_and_b_is_left_alone(run, caplog, monkeypatch, tmp_path):
    tracker = WandbTracker(run)
    tracker.log(1, {"a": 1})
    monkeypatch.setattr(
        wandb.Run, "log", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("broken pipe\nand so on"))
    )
    for step in range(2, 5):
        tracker.log(step, {"a": 1})
    tracker.log_pictures(5, {"scatter": tmp_path / "none.png"})
    tracker.finish()
    assert warnings(caplog) == ["W&B failed (broken pipe): the run continues without it; metrics.jsonl has everything."]


def test_a_failure_at_the_start_does_not_stop_the_run(run, caplog, monkeypatch):
    monkeypatch.setattr(wandb, "init", lambda **_: (_ for _ in ()).throw(OSError("no room")))
    tracker = WandbTracker(run, mode="offline")
    tracker.log(1, {"a": 1})
    tracker.finish()
    assert len(warnings(caplog)) == 1


def test_the_mode_follows_the_login(monkeypatch):
    assert WandbTracker._chosen("auto") == "offline"
    monkeypatch.setattr(wandb, "login", lambda prompt: True)
    assert WandbTracker._chosen("auto") == "online"
    assert WandbTracker._chosen("offline") == "offline"
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert WandbTracker._chosen("auto") == "disabled"


def test_a_resumed_run_is_the_same_run_to_w_and_b(run):
    first = WandbTracker(run, mode="offline")
    first.log(1, {"a": 1.0})
    first.finish()
    second = WandbTracker(run, mode="offline")
    assert second._wandb.id == first._wandb.id
    second.finish()
    folders = {path.name for path in (run.folder / "wandb").glob("offline-run-*")}
    assert len(folders) == 2
    assert all(first._wandb.id in folder for folder in folders)


@pytest.mark.thorough
def test_the_link_that_w_and_b_leaves_does_not_keep_a_run_from_being_resumed(call, run_folders, tmp_path):
    short = ("agent=random", "bonus=count", "env.size=7", "eval.every=200", "checkpoint.every=200")
    assert call("train", "steps=200", *short).returncode == 0
    (folder,) = run_folders()
    logs = folder / "wandb" / "offline-run-20260102_030405-abc" / "logs"
    logs.mkdir(parents=True)
    (tmp_path / "cache.log").write_text("kept")
    (logs / "debug-core.log").symlink_to(tmp_path / "cache.log")
    done = call("resume", str(folder), "steps=400")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cache.log").read_text() == "kept"
    assert not (logs / "debug-core.log").is_symlink()


@pytest.mark.parametrize(
    ("folders", "known"),
    [
        ([], None),
        (["run-20260102_030405-abc"], "abc"),
        (["offline-run-20260102_030405-abc", "offline-run-20260102_030405-abc-1"], "abc"),  # two in one second
        (["run-20260102_030405-my-own-id"], "my-own-id"),
        (["run-20260101_030405-late", "offline-run-20260102_030405-abc"], "abc"),
    ],
)
def test_the_run_of_w_and_b_is_known_by_its_file(tmp_path, folders, known):
    for folder in folders:
        own = folder.partition("_")[2].partition("-")[2].removesuffix("-1")
        (tmp_path / "wandb" / folder).mkdir(parents=True)
        (tmp_path / "wandb" / folder / f"run-{own}.wandb").touch()
    assert _resumed(tmp_path).get("id") == known
