"""Experiments know which runs they consist of, from the configs that make them."""

import pytest
from folders import make_run

from cfn.analysis.experiments import PRESETS, SEARCHES, members, plan
from cfn.analysis.figures.paper import FIGURES
from cfn.config import CONF
from cfn.errors import UsageError
from cfn.runs.record import load_runs

FETCH = ("experiment=fetch", "preset=mini")


def test_every_experiment_of_the_paper_has_a_figure():
    experiments = {path.stem for path in (CONF / "experiment").glob("*.yaml")}
    assert experiments - set(FIGURES) == {"none", "random_walk"}
    assert set(FIGURES) <= experiments


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        (name, preset)
        for name in sorted(FIGURES.keys() - set(SEARCHES))
        for preset in PRESETS
        if (CONF / "preset" / preset / f"{name}.yaml").is_file()
    ],
)
def test_every_preset_has_cells(name, preset):
    found, seeds = plan(CONF, name, preset)
    assert all({"env", "agent", "bonus"} <= cell.keys() and "seed" not in cell for cell in found)
    assert len({tuple(cell.items()) for cell in found}) == len(found) >= 2
    assert seeds >= (1 if name.startswith("montezuma") and preset == "mini" else 3)


def test_cells_are_every_combination_but_for_the_seed():
    found, seeds = plan(CONF, "fetch", "paper")
    assert (len(found), seeds) == (3 * 3 * 3, 9)
    mode = {"env": "fetch_slide", "agent": "sac", "bonus": "rnd", "env.mode": "hard"}
    assert mode in found
    noise = plan(CONF, "gridworld_noise", "mini").cells
    assert [cell["env.action_noise"] for cell in noise if cell["bonus"] == "rnd"] == ["0", "0.25", "0.5"]


def fetch(tmp_path, bonus, seed=0, overrides=FETCH, mode="easy", **more):
    return make_run(tmp_path, bonus, seed, "fetch_push", "sac", config={"env.mode": mode}, overrides=overrides, **more)


def test_groups_come_in_the_experiments_order_and_what_is_missing_is_named(tmp_path):
    for bonus, seeds in (("none", 3), ("cfn", 1)):
        for seed in range(seeds):
            fetch(tmp_path, bonus, seed)
    make_run(tmp_path, "cfn")
    groups, tasks, problems = members(load_runs([tmp_path])[0], "fetch", CONF)
    assert [one.label for one in groups] == ["CFN", "SAC"]
    assert tasks == ["fetch_push easy"]
    assert problems == [
        "fetch (preset=mini) has no seed 1, 2 of: bonus=cfn",
        "fetch (preset=mini) has no run of: bonus=rnd",
    ]
    for seed in (0, 1, 2, 7):
        fetch(tmp_path, "rnd", seed)
        fetch(tmp_path, "cfn", seed)
    groups, _, problems = members(load_runs([tmp_path])[0], "fetch", CONF)
    assert [one.label for one in groups] == ["CFN", "RND", "SAC"]
    assert not any("has no" in problem for problem in problems)


def test_runs_that_were_begun_one_by_one_are_known_by_their_values(tmp_path):
    fetch(tmp_path, "cfn", overrides=(), mode="hard")
    fetch(tmp_path, "rnd", overrides=(), mode="medium")
    fetch(tmp_path, "rnd", overrides=("experiment=other",), mode="default")
    fetch(tmp_path, "rnd", overrides=("env.max_steps=9",), mode="default")
    groups, tasks, problems = members(load_runs([tmp_path])[0], "fetch", CONF)
    assert [(one.task, one.label) for one in groups] == [("fetch_push hard", "CFN"), ("fetch_push medium", "RND")]
    assert problems[0].startswith("fetch (preset=paper) has no run of: env=fetch_push bonus=cfn env.mode=default; ")
    assert problems[1].startswith(
        "fetch (preset=paper) has no seed 1 to 8 of: env=fetch_push bonus=cfn env.mode=hard; "
    )
    assert problems[0].endswith("; and 17 more"), "of 27 cells, two have a run"
    modes = ("default", "medium", "hard")
    robots = ("fetch_push", "fetch_slide", "fetch_pick_and_place")
    assert tasks == [f"{robot} {mode}" for robot in robots for mode in modes], "also those without a run"


def test_a_suites_value_is_that_of_the_bonus_it_is_for(tmp_path):
    for capacity in (5_000_000, 20_000_000):
        make_run(tmp_path, env="montezuma", config={"bonus.capacity": capacity}, overrides=["bonus.capacity=1"])
    found = members(load_runs([tmp_path])[0], "montezuma_buffer", CONF)
    assert [one.first.value("bonus.capacity") for one in found.groups] == [20_000_000, 5_000_000], "the plan's order"
    assert not any("has no run" in problem for problem in found.problems)


def test_presets_are_not_mixed(tmp_path):
    fetch(tmp_path, "cfn")
    fetch(tmp_path, "rnd")
    fetch(tmp_path, "cfn", overrides=("experiment=fetch",), mode="hard")
    groups, _, problems = members(load_runs([tmp_path])[0], "fetch", CONF)
    assert [one.task for one in groups] == ["fetch_push easy"] * 2
    assert "left out: 1 runs of fetch with a preset other than mini" in problems[0]


def test_values_of_ones_own_are_drawn_too(tmp_path):
    for noise in (0, 0.9):
        overrides = ("experiment=gridworld_noise", f"env.action_noise={noise}")
        make_run(tmp_path, config={"env.action_noise": noise}, overrides=overrides)
    groups, _, problems = members(load_runs([tmp_path])[0], "gridworld_noise", CONF)
    assert [one.first.value("env.action_noise") for one in groups] == [0, 0.9]
    assert len(problems) == 2, "cells without a run, and seeds"


def test_a_choice_of_the_command_line_replaces_the_experiments_own(tmp_path):
    overrides = ("experiment=gridworld_counts", "preset=mini", "agent=random")
    for bonus in ("cfn", "rnd"):
        for seed in range(3):
            more = (f"bonus={bonus}", f"seed={seed}")
            make_run(tmp_path, bonus, seed, "gridworld", "random", overrides=(*overrides, *more))
    found = members(load_runs([tmp_path])[0], "gridworld_counts", CONF)
    assert [one.first.bonus for one in found.groups] == ["cfn", "rnd"]
    assert found.problems == ["gridworld_counts (preset=mini) has no run of: bonus=pixelcnn"]


def test_none_at_all(tmp_path):
    make_run(tmp_path)
    sentence = "none of the 1 runs belongs to d4rl: create its runs with cfn train experiment=d4rl"
    with pytest.raises(UsageError, match=sentence):
        members(load_runs([tmp_path])[0], "d4rl", CONF)


def test_a_search_has_no_plan_so_nothing_is_missing(tmp_path):
    """Whatever environments, bonuses and scales were tried; runs started otherwise do not belong to it."""
    for env, bonus, scale in (("gridworld", "cfn", 0.1), ("gridworld", "cfn", 0.2), ("pen", "mine", 3)):
        overrides = ["experiment=scale_search", f"bonus.scale={scale}"]
        make_run(tmp_path, bonus, env=env, config={"bonus.scale": scale}, overrides=overrides)
    make_run(tmp_path, "cfn", config={"bonus.scale": 0.3}, overrides=["bonus.scale=0.3"])
    groups, tasks, problems = members(load_runs([tmp_path])[0], "scale_search", CONF)
    assert [one.label for one in groups] == ["CFN, bonus.scale=0.1", "CFN, bonus.scale=0.2", "mine"]
    assert tasks == ["gridworld", "pen"]
    assert problems == []


def test_a_search_without_runs_is_refused(tmp_path):
    make_run(tmp_path, config={"bonus.scale": 0.3}, overrides=["bonus.scale=0.3"])
    with pytest.raises(UsageError, match="none of the 1 runs belongs to scale_search: create its runs with cfn train"):
        members(load_runs([tmp_path])[0], "scale_search", CONF)
