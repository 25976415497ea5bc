"""Parts of a bonus on the command line: chosen by name, with keys of their own."""

import gymnasium as gym
import numpy as np
import pytest
from composing import composed

from cfn.bonuses.noveld import NovelDBonus
from cfn.bonuses.product import ProductBonus
from cfn.config import CONF
from cfn.errors import UsageError
from cfn.launch.parts import choosing_parts, declared_parts


def test_the_parts_that_the_configs_declare_are_found():
    parts = set(declared_parts([CONF]))
    assert {part for part in parts if part.startswith("bonus.")} == {"bonus.global", "bonus.episodic", "bonus.novelty"}
    assert {part for part in parts if part.startswith("agent.")} == {"agent.discrete", "agent.continuous"}
    assert {part for part in parts if part.startswith("tracker.")} == {"tracker.wandb", "tracker.tensorboard"}


def test_a_users_own_parts_are_found_and_broken_files_are_left_to_hydra(tmp_path):
    (tmp_path / "bonus").mkdir()
    (tmp_path / "bonus" / "mine.yaml").write_text("defaults:\n  - /bonus@inner: rnd\n  - _self_\n_target_: mine.Mine\n")
    (tmp_path / "bonus" / "broken.yaml").write_text("defaults: [/bonus@x: : y\n")
    (tmp_path / "bonus" / "odd.yaml").write_text("- /bonus@x\n")
    assert choosing_parts(["bonus.inner=cfn"], [CONF, tmp_path]) == ["bonus@bonus.inner=cfn"]


def test_choices_of_parts_are_written_as_hydra_does_and_all_else_is_left_alone():
    words = ["-m", "bonus=noveld", "bonus.novelty=cfn,rnd", "bonus.novelty.lr=1", "bonus.novelty={lr:1}", "seed=1"]
    assert choosing_parts(words, [CONF]) == [*words[:2], "bonus@bonus.novelty=cfn,rnd", *words[3:]]


def chosen(*words):
    return composed(*words)[0].bonus


def test_a_part_has_the_values_of_its_suite_and_keys_of_its_own():
    bonus = chosen("bonus=product", "bonus.global=rnd", "bonus.episodic=first_visit", "bonus.global.lr=0.5")
    assert bonus.target is ProductBonus
    assert (bonus.keys["global"].name, bonus.keys["episodic"].name) == ("rnd", "first_visit")
    assert bonus.keys["global"].keys == {"scale": 1e-4, "lr": 0.5, "inputs": "published"}
    assert bonus.keys["episodic"].keys["scale"] == 1, "the product has its own scale"
    assert chosen("bonus=noveld").target is NovelDBonus


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bonus.novelty.lr=-1"], r"^bonus\.novelty\.lr=-1: should be greater than 0"),
        (["bonus.novelty.foo=1"], r"^bonus\.novelty\.foo is not a key: the keys of bonus\.novelty=rnd are inputs, lr"),
        (["bonus.novelty=cfn", "bonus.novelty.d=x"], r"^bonus\.novelty\.d=x: should be a valid integer"),
        (["bonus.novelty._target_=cfn.nothing.X"], r"^bonus\.novelty\._target_=cfn\.nothing\.X cannot be imported"),
        (["~bonus.novelty"], r"^bonus\.novelty is not set"),
    ],
)
def test_bad_keys_of_a_part_are_refused_with_their_full_name(words, message):
    with pytest.raises(UsageError, match=message):
        chosen("bonus=noveld", *words)


def test_parts_are_built_with_what_the_loop_offers_and_seeds_of_their_own():
    offered = {
        "observation_space": gym.spaces.Box(-1, 1, (5,), np.float64),
        "action_space": gym.spaces.Discrete(4),
        "seed": 3,
        "device": "cpu",
        "num_envs": 2,
        "frames": None,
        "steps": None,
    }
    product = chosen("bonus=product", "bonus.global=rnd").build(**offered)
    again = chosen("bonus=product", "bonus.global=rnd").build(**offered)
    alone = chosen("bonus=rnd").build(**offered)
    weights = [next(bonus.networks[0].parameters()).sum().item() for bonus in (product, again, alone)]
    assert weights[0] == weights[1] != weights[2]
    with pytest.raises(UsageError, match=r"^bonus\.novelty: E3BBonus remembers one episode, but bonus=noveld"):
        chosen("bonus=noveld", "bonus.novelty=e3b").build(**offered)
