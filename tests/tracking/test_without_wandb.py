"""W&B is optional: a run without it says so and continues."""

import logging

from cfn.runs.folder import Run
from cfn.tracking import weights_and_biases


def test_a_run_continues_if_wandb_is_not_installed(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(weights_and_biases, "wandb", None)
    caplog.set_level(logging.INFO)
    tracker = weights_and_biases.WandbTracker(Run(tmp_path, "e", "a", "b", 0, "a setting", {"steps": 1}))
    tracker.log(1, {"loss": 1.0})
    tracker.finish()
    assert "W&B is not installed (pip install 'cfn-rl[paper]' brings it): metrics.jsonl has everything." in caplog.text
