"""Results of a run that are computed from its files."""

import json

import pytest
import yaml
from folders import make_run

from cfn.analysis.grouping import group
from cfn.runs.record import Record


def training(tmp_path, episodes, every=100, steps=1000, last=None):
    """A run with rows (step, return, episodes so far) and, if `last` is given, a last row without an episode."""
    folder = make_run(tmp_path, tables=0, config={"eval.every": every, "steps": steps})
    rows = [{"step": s, "train/return": r, "train/episodes": n} for s, r, n in episodes]
    rows += [{"step": last, "eval/return": 0}] if last else []
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Record.read(folder)


def test_training_returns_are_averaged_per_iteration(tmp_path):
    """Iterations of 100 steps: three episodes in the first, one of them at its last step; none in the second."""
    run = training(tmp_path, [(40, 1, 1), (70, 2, 2), (100, 6, 3), (201, 5, 4), (300, 7, 5)], last=300)
    means = run.training_by_iteration
    assert means.steps.tolist() == [100, 300]
    assert means.values.tolist() == [3, 6]


def test_episodes_that_ended_together_count_each(tmp_path):
    """Two episodes with a mean of 4, then one of 1: (2 * 4 + 1) / 3."""
    run = training(tmp_path, [(50, 4, 2), (60, 1, 3)], last=100)
    assert run.training_by_iteration.values.tolist() == [3]


def test_an_iteration_that_is_not_over_is_left_out(tmp_path):
    assert training(tmp_path / "a", [(50, 1, 1), (150, 9, 2)]).training_by_iteration.values.tolist() == [1]
    assert training(tmp_path / "b", [(50, 1, 1)]).training_by_iteration is None


def test_the_last_iteration_of_a_run_may_be_shorter(tmp_path):
    run = training(tmp_path, [(50, 1, 1), (150, 3, 2)], steps=150)
    assert run.training_by_iteration.steps.tolist() == [100, 150]


@pytest.mark.parametrize("every", [None, 0, -5, "often", 10**400])
def test_without_evaluations_there_are_no_iterations(tmp_path, every):
    run = training(tmp_path, [(50, 1, 1)], every=every, last=100)
    assert run.iteration is None
    assert run.training_by_iteration is None


def test_without_the_number_of_episodes_each_row_is_one(tmp_path):
    run = training(tmp_path, [(50, 1, None), (60, 2, None)], last=100)
    assert run.training_by_iteration.values.tolist() == [1.5]
    assert run.goals is None


def test_the_parts_of_a_bonus_distinguish_settings(tmp_path):
    runs = []
    for name in ("rnd", "cfn"):
        part = {"_target_": "x", "scale": 1}
        folder = make_run(tmp_path, "noveld", config={"bonus.novelty": part}, overrides=[f"bonus@bonus.novelty={name}"])
        choices = {"env": "gridworld", "agent": "rainbow", "bonus": "noveld", "bonus@bonus.novelty": name}
        (folder / ".hydra" / "hydra.yaml").write_text(yaml.safe_dump({"hydra": {"runtime": {"choices": choices}}}))
        runs.append(Record.read(folder))
    assert [run.value("bonus.novelty") for run in runs] == ["rnd", "cfn"]
    assert [run.settings["bonus.novelty"] for run in runs] == ["rnd", "cfn"]
    assert runs[0].named_keys == {"bonus.novelty"}
    groups, _ = group(runs)
    assert [one.label for one in groups] == ["NovelD, bonus.novelty=cfn", "NovelD, bonus.novelty=rnd"]
