"""Files for TensorBoard, read back with TensorBoard's own reader."""

import io

import numpy as np
import pytest
import yaml
from matplotlib.image import imread, imsave

from cfn.runs.folder import Run
from cfn.tracking.tensorboard import TensorBoardTracker, hyperparameters

pytest.importorskip("tensorboard")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

CONFIG = {"steps": 10, "agent": {"_target_": "a.B", "lr": 0.5, "hidden": [3, 4]}, "compile": False, "device": None}


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, "env", "agent", "bonus", 0, "a setting", CONFIG)


def read(run):
    events = EventAccumulator(str(run.files.tensorboard), size_guidance={"scalars": 0, "images": 0})
    events.Reload()
    return events


def test_it_holds_metrics_pictures_and_config(run, tmp_path):
    tracker = TensorBoardTracker(run)
    tracker.log(5, {"eval/return": 0.5, "bonus/mse": 2.0})
    tracker.log(10, {"eval/return": 1.0})
    picture = np.random.default_rng(0).integers(255, size=(6, 7, 3)).astype(np.uint8)
    imsave(tmp_path / "scatter.png", picture)
    (tmp_path / "film.svg").write_text("<svg/>")
    tracker.log_pictures(10, {"scatter": tmp_path / "scatter.png", "film": tmp_path / "film.svg"})
    tracker.finish()
    events = read(run)
    assert [(event.step, event.value) for event in events.Scalars("eval/return")] == [(5, 0.5), (10, 1.0)]
    assert [event.value for event in events.Scalars("bonus/mse")] == [2.0]
    assert events.Tags()["images"] == ["plots/scatter"]
    (image,) = events.Images("plots/scatter")
    assert (imread(io.BytesIO(image.encoded_image_string))[..., :3] * 255 == picture).all()
    text = events.Tensors("config/text_summary")[0].tensor_proto.string_val[0].decode()
    assert yaml.safe_load(text.removeprefix("```yaml\n").removesuffix("\n```")) == CONFIG
    plugin = events.summary_metadata["_hparams_/session_start_info"].plugin_data
    assert b"agent.lr" in plugin.content


def test_rows_of_a_resumed_run_replace_the_old_ones(run):
    for first, last in ((1, 4), (3, 6)):  # killed after step 4, resumed from a checkpoint of step 2
        tracker = TensorBoardTracker(run)
        for step in range(first, last + 1):
            tracker.log(step, {"loss": float(10 * first + step)})
        tracker.finish()
    assert [(event.step, event.value) for event in read(run).Scalars("loss")] == [
        *((step, 10.0 + step) for step in (1, 2)),
        *((step, 30.0 + step) for step in (3, 4, 5, 6)),
    ]


def test_a_run_without_rows_leaves_no_file(run):
    TensorBoardTracker(run).finish()
    assert not run.files.tensorboard.exists()


def test_configs_are_flattened():
    assert hyperparameters(CONFIG) == {
        "steps": 10,
        "agent._target_": "a.B",
        "agent.lr": 0.5,
        "agent.hidden": "[3, 4]",
        "compile": False,
        "device": "None",
    }
