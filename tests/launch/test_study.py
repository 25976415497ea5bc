"""Studies with Optuna, within this process."""

import json

import pytest

KEYS = (
    "hydra/sweeper=optuna", "hydra/sweeper/sampler=random", "hydra.sweeper.sampler.seed=0", "env.size=7",
    "env.image_size=14", "agent=random", "bonus=count", "steps=60", "eval.every=30", "checkpoint.every=20",
    "tracker=none", "objective=explore/states:last",
)  # fmt: skip
RANGE = "bonus.scale=tag(log, interval(0.001, 0.1))"


@pytest.mark.thorough
def test_a_study_is_reported_and_a_stopped_one_continues(call, tmp_path, run_folders):
    optuna = pytest.importorskip("optuna")
    done = call("train", "-m", *KEYS, "hydra.sweeper.n_trials=2", RANGE)
    assert done.returncode == 0, done.stderr
    assert "2 finished trials, 0 failed; the best:" in done.stdout
    (folder,) = (path for path in (tmp_path / "outputs" / "sweeps").iterdir() if path.is_dir())
    assert {"study.db", "study.md", "study.png", "runs.json"} <= {path.name for path in folder.iterdir()}
    assert len(run_folders()) == 2

    # A third trial was running when its command was killed.
    study = optuna.load_study(study_name=folder.name, storage=f"sqlite:///{folder / 'study.db'}")
    study.ask({"bonus.scale": optuna.distributions.FloatDistribution(0.001, 0.1, log=True)})
    done = call("resume", f"outputs/sweeps/{folder.name}.yaml", "hydra.sweeper.n_trials=3")
    assert done.returncode == 0, done.stderr
    assert "3 finished trials, 1 failed" in done.stdout
    third = study.trials[2].params["bonus.scale"]
    assert study.trials[3].params["bonus.scale"] == third, "the interrupted trial is tried again"
    assert len(run_folders()) == 3
    assert len({path.parent.name[:19] for path in run_folders()}) == 1, "one study, one time"
    assert len(json.loads((folder / "runs.json").read_text())["runs"]) == 3


def test_a_study_that_cannot_be_is_one_sentence(call, tmp_path):
    pytest.importorskip("optuna")
    for arguments, sentence in {
        ("seed=0",): "this study tunes no key: name a range",
        (RANGE, "objective=eval/return:worst"): "objective=eval/return:worst: should be of the form",
        (RANGE, "bonus.scal=1"): "bonus.scal is not a key (did you mean bonus.scale?)",
    }.items():
        done = call("train", "-m", *KEYS, *arguments)
        assert done.returncode == 1
        assert sentence in done.stderr
    assert not list(tmp_path.rglob("metrics.jsonl"))
