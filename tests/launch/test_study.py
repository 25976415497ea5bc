"""Studies with Optuna, within this process."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
from folders import make_run
from metrics import rows
from omegaconf import OmegaConf

from cfn.analysis.figures.study import draw_trials
from cfn.launch import study
from cfn.launch.planning import Planner
from cfn.runs.folder import Run

KEYS = (
    "hydra/sweeper=optuna", "hydra/sweeper/sampler=random", "hydra.sweeper.sampler.seed=0", "env.size=7",
    "env.image_size=14", "agent=random", "bonus=count", "steps=60", "eval.every=30", "checkpoint.every=20",
    "tracker=none", "pictures=false", "eval.max_steps=5", "objective=explore/states:last",
)  # fmt: skip
RANGE = "bonus.scale=tag(log, interval(0.001, 0.1))"


@pytest.mark.thorough
def test_a_study_is_reported_and_a_stopped_one_continues(call, tmp_path, run_folders):
    optuna = pytest.importorskip("optuna")
    done = call("train", "-m", *KEYS, "hydra.sweeper.n_trials=2", RANGE)
    assert done.returncode == 0, done.stderr
    assert "2 finished trials, 0 pruned, 0 failed; the best:" in done.stdout
    (folder,) = (path for path in (tmp_path / "outputs" / "sweeps").iterdir() if path.is_dir())
    assert {"study.db", "study.md", "study.png", "runs.json"} <= {path.name for path in folder.iterdir()}
    assert len(run_folders()) == 2

    # A third trial was running when its command was killed.
    study = optuna.load_study(study_name=folder.name, storage=f"sqlite:///{folder / 'study.db'}")
    study.ask({"bonus.scale": optuna.distributions.FloatDistribution(0.001, 0.1, log=True)})
    done = call("resume", f"outputs/sweeps/{folder.name}.yaml", "hydra.sweeper.n_trials=3")
    assert done.returncode == 0, done.stderr
    assert "3 finished trials, 0 pruned, 0 failed" in done.stdout
    third = study.trials[2].params["bonus.scale"]
    assert study.trials[3].params["bonus.scale"] == third, "the interrupted trial is tried again"
    assert len(run_folders()) == 3
    assert len({path.parent.name[:19] for path in run_folders()}) == 1, "one study, one time"
    assert len(json.loads((folder / "runs.json").read_text())["runs"]) == 3
    done = call("resume", f"outputs/sweeps/{folder.name}", "hydra.sweeper.n_trials=4")
    assert "4 finished trials, 0 pruned, 0 failed" in done.stdout, "the interrupted trial does not count"


@pytest.mark.thorough
def test_a_trial_whose_run_is_known_already_has_the_objective_of_the_study(call, tmp_path, run_folders):
    optuna = pytest.importorskip("optuna")
    done = call("train", "-m", *KEYS, "hydra.sweeper.n_trials=2", "seed=choice(0)")
    assert done.returncode == 0, done.stderr
    (database,) = (tmp_path / "outputs" / "sweeps").glob("*/study.db")
    study = optuna.load_study(study_name=database.parent.name, storage=f"sqlite:///{database}")
    (folder,) = run_folders()
    assert [trial.value for trial in study.trials] == 2 * [rows(folder)[-1]["explore/states"]]
    text = (database.parent / "study.md").read_text()
    assert "All of them have the same objective: it cannot tell which values are better." in text


@pytest.mark.thorough
def test_a_metric_that_no_run_has_stops_the_study(call, run_folders):
    pytest.importorskip("optuna")
    done = call("train", "-m", *KEYS, "hydra.sweeper.n_trials=3", RANGE, "objective=eval/retrn:mean")
    assert (done.returncode, len(run_folders())) == (1, 1)
    assert "has no metric eval/retrn; begin a new study with a metric that" in done.stderr.splitlines()[-1]


def test_an_interrupt_between_two_trials_says_how_to_continue(call, tmp_path, monkeypatch):
    pytest.importorskip("optuna")

    def interrupted(planner, runs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Planner, "plan", interrupted)
    done = call("train", "-m", *KEYS, "hydra.sweeper.n_trials=2", RANGE)
    (folder,) = (path for path in (tmp_path / "outputs" / "sweeps").iterdir() if path.is_dir())
    assert f"What is left is continued by:\ncfn resume outputs/sweeps/{folder.name}\n" in done.stdout
    assert done.returncode == 130


@pytest.mark.thorough
def test_runs_that_fall_behind_are_pruned(call, tmp_path, run_folders):
    """The seed is what this study chooses: some walks find fewer states than others."""
    optuna = pytest.importorskip("optuna")
    pruner = ("hydra/sweeper/pruner=median", "hydra.sweeper.pruner.n_startup_trials=2")
    seeds = ("hydra/sweeper=optuna", "hydra/sweeper/sampler=grid", "seed=choice(0,1,2,3,4,5,6)")
    walk = ("env.size=21", "env.image_size=21", "steps=200", "eval.every=40", "hydra.sweeper.n_trials=6")
    done = call("train", "-m", *KEYS[3:], *seeds, *walk, *pruner)
    assert done.returncode == 0, done.stderr
    (database,) = (tmp_path / "outputs" / "sweeps").glob("*/study.db")
    study = optuna.load_study(study_name=database.parent.name, storage=f"sqlite:///{database}")
    kept, pruned = {}, {}
    for folder in run_folders():
        summary = json.loads((folder / "summary.json").read_text())
        scores = {row["step"]: row["explore/states"] for row in rows(folder) if "explore/states" in row}
        (kept if summary["state"] == "finished" else pruned)[summary["seed"]] = scores
        assert summary["state"] in ("finished", "pruned")
    assert len(kept) >= 2
    assert pruned, "the walks of these seeds differ enough"
    finished = []
    for trial in study.trials:
        seed = trial.params["seed"]
        scores = (kept | pruned)[seed]
        before_the_end = {step: score for step, score in scores.items() if step < 200}
        assert trial.intermediate_values == before_the_end
        assert trial.value == scores[max(scores)]
        behind = []
        for step in before_the_end:
            so_far = max(score for at, score in before_the_end.items() if at <= step)
            behind.append(len(finished) >= 2 and so_far < np.median([known[step] for known in finished]))
        assert trial.state.name == ("PRUNED" if seed in pruned else "COMPLETE")
        assert behind == [False] * (len(behind) - (seed in pruned)) + [True] * (seed in pruned)
        if seed in kept:
            finished.append(scores)
    assert f"{len(kept)} finished trials, {len(pruned)} pruned, 0 failed; the best:" in done.stdout
    listed = call("runs").stdout
    assert listed.count("pruned") == len(pruned)

    both = (f"outputs/sweeps/{database.parent.name}.yaml", f"outputs/sweeps/{database.parent.name}")
    done = call("resume", *both, "hydra.sweeper.n_trials=6")
    assert done.returncode == 0, done.stderr
    done = call("resume", "outputs")
    name = f"outputs/sweeps/{database.parent.name}"
    expected = f"0 runs: 0 finished, 0 to continue, 0 to start.\n{name} is a study: cfn resume {name} continues it.\n"
    assert (done.returncode, done.stdout) == (0, expected)
    done = call("resume", name, "steps=300")
    assert done.stderr == f"cfn: {name} is a study, which is continued alone and as it is: cfn resume {name}\n"
    done = call("resume", "outputs/gridworld_small")
    assert done.stdout.startswith(f"6 runs: {len(kept)} finished, 0 to continue, 0 to start.")
    assert done.stdout.count("is pruned already and is left alone.") == len(pruned)


def test_a_database_that_cannot_be_asked_does_not_stop_a_run(tmp_path, caplog):
    pytest.importorskip("optuna")
    from cfn.launch.pruning import Pruning

    run = make_run(tmp_path / "run")
    pruner = {"_target_": "optuna.pruners.MedianPruner"}
    keys = {"study": str(tmp_path / "nosuch"), "trial": 0, "pruner": pruner, "direction": "maximize"}
    config = {"steps": 1000, "objective": "eval/return:last"}
    Pruning(Run(run, "env", "agent", "bonus", 0, "", config), OmegaConf.create(keys)).evaluated(100, {})
    assert "The study cannot be asked whether to prune this run (" in caplog.text


@pytest.mark.thorough
def test_a_study_that_cannot_be_is_one_sentence(call, tmp_path):
    pytest.importorskip("optuna")
    for arguments, sentence in {
        ("seed=0",): "this study tunes no key: name a range",
        (RANGE, "objective=eval/return:worst"): "objective=eval/return:worst: should be of the form",
        (RANGE, "hydra/sweeper/pruner=median", "eval.every=null"): "hydra/sweeper/pruner needs evaluations",
        (RANGE, "hydra.sweeper.direction=max"): "hydra.sweeper.direction=max: choose maximize or minimize",
        (RANGE, "hydra.sweeper.n_jobs=0"): "hydra.sweeper.n_jobs=0: should be a whole number of at least 1",
        (RANGE, "bonus.scal=1"): "bonus.scal is not a key (did you mean bonus.scale?)",
    }.items():
        done = call("train", "-m", *KEYS, *arguments)
        assert done.returncode == 1
        assert sentence in done.stderr
    assert not list(tmp_path.rglob("metrics.jsonl"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sampler", "sentence"),
    [
        ("grid", "bonus.scale: hydra/sweeper/sampler=grid needs a list of values: write bonus.scale=choice(...)"),
        ("cmaes", "hydra/sweeper/sampler=cmaes needs a further package: pip install cmaes"),
    ],
)
def test_a_sampler_that_cannot_be_used_is_refused_before_the_first_run(call, tmp_path, monkeypatch, sampler, sentence):
    pytest.importorskip("optuna")
    monkeypatch.setattr(study, "find_spec", lambda name: None)
    done = call("train", "-m", KEYS[0], *KEYS[3:], RANGE, f"hydra/sweeper/sampler={sampler}")
    assert done.returncode == 1
    assert done.stderr.startswith(f"cfn: {sentence}")
    assert not (tmp_path / "outputs").exists()


def test_trials_with_the_same_objective_are_drawn_with_their_values(tmp_path, monkeypatch):
    optuna = pytest.importorskip("optuna")
    monkeypatch.setattr(plt, "close", lambda figure: None)
    trials = optuna.create_study()
    ranges = {"bonus.scale": optuna.distributions.FloatDistribution(0, 1)}
    for scale in (0.25, 0.75):
        trials.add_trial(optuna.trial.create_trial(params={"bonus.scale": scale}, distributions=ranges, value=0.0))
    draw_trials(trials, trials.trials, tmp_path / "study.png")
    figure = plt.gcf()
    monkeypatch.undo()
    (lines,) = (lines for axes in figure.axes for lines in axes.collections)
    ends = [segment[-1, 1] for segment in lines.get_segments()]
    plt.close(figure)
    assert ends[0] < ends[1]
