"""The public interface for training loops outside this package."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import cfn
from cfn import Bonus, make_bonus
from cfn.bonuses.library import bonus_names

VECTORS = gym.spaces.Box(-1, 1, (3,), np.float32)
IMAGES = gym.spaces.Box(0, 255, (12, 12), np.uint8)
SMALL = {"min_size": 5, "batch_size": 4, "capacity": 100}


def test_the_public_names_are_these():
    """They are an interface: a name that goes away breaks the code of others."""
    assert {
        "Bonus",
        "BonusVectorWrapper",
        "CoinFlipBonus",
        "CountBonus",
        "NoBonus",
        "PixelCNNBonus",
        "RNDBonus",
        "TrueCounts",
        "Visits",
        "bonus_errors",
        "bonus_names",
        "make_bonus",
    } <= set(cfn.__all__)
    assert sorted(cfn.__all__) == sorted(cfn._PLACES)
    for name in cfn.__all__:
        assert getattr(cfn, name).__module__.startswith("cfn.")
    with pytest.raises(AttributeError, match="has no attribute 'nosuch'"):
        cfn.nosuch  # noqa: B018


@pytest.mark.thorough
def test_it_needs_neither_hydra_nor_wandb_nor_mujoco():
    code = (
        "import sys, gymnasium, numpy; from cfn import *; import cfn.wrappers\n"
        "make_bonus('cfn', gymnasium.spaces.Box(-1, 1, (3,)), capacity=2000)\n"
        "print([name for name in ('hydra', 'omegaconf', 'wandb', 'mujoco', 'ale_py') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("name", bonus_names())
def test_every_bonus_can_be_made(name):
    keys = SMALL if name.startswith("cfn") else {}
    bonus = make_bonus(name, IMAGES, gym.spaces.Discrete(2), **keys)
    assert isinstance(bonus, Bonus)


def test_keys_reach_the_bonus():
    assert make_bonus("rnd", VECTORS, scale=0.5).scale == 0.5


def test_keys_that_the_file_sets_for_a_part_are_kept():
    bonus = make_bonus("product", IMAGES, **{"global": "count", "episodic": "first_visit"}, normalize=False, scale=1)
    assert bonus.parts["episodic"].scale == 1
    part = {"name": "first_visit", "scale": 0.5}
    assert make_bonus("product", IMAGES, **{"global": "count", "episodic": part}).parts["episodic"].scale == 0.5


@pytest.mark.parametrize("part", [None, 3, make_bonus("count", VECTORS)])
def test_a_part_is_given_by_its_name(part):
    with pytest.raises(ValueError, match=r"novelty is \w+: give the name of a bonus, or {"):
        make_bonus("noveld", VECTORS, novelty=part)


def test_a_bonus_that_extends_another_has_the_values_of_its_file():
    points, answers = np.ones((6, 3), np.float32), []
    for name, keys in (
        ("cfn_tuned", {}),
        ("cfn", {"lr": 0.001, "flips": "balanced"}),
        ("cfn", {}),
        ("cfn_tuned", {"lr": 0.0001, "flips": "rademacher"}),  # keys go before the file
    ):
        bonus = make_bonus(name, VECTORS, min_size=6, **keys)
        bonus.observe(points)
        bonus.update()
        answers.append(bonus.novelty(points)[0])
    assert answers[0] == answers[1] != answers[2] == answers[3]


def test_the_seed_decides():
    points = np.ones((6, 3), np.float32)
    bonuses = [make_bonus("rnd", VECTORS, seed=seed) for seed in (1, 1, 2)]
    first, same, other = (bonus.novelty(points)[0] for bonus in bonuses)
    assert first == same != other


@pytest.mark.parametrize(
    ("name", "space", "keys", "message"),
    [
        ("nosuch", VECTORS, {}, r"there is no bonus 'nosuch': the bonuses are cfn, cfn_tuned, count, "),
        ("cfn", VECTORS, {"sclae": 1}, r"bonus\.sclae is not a key \(did you mean bonus\.scale\?\)"),
        ("cfn", VECTORS, {"scale": -1}, r"bonus\.scale=-1: should be greater than or equal to 0"),
        ("cfn", VECTORS, {"capacity": 1}, r"bonus\.capacity: 1 states cannot fill a batch"),
        ("cfn", (3,), {}, "observation_space is tuple, not a Gymnasium space"),
        ("cfn", gym.spaces.Discrete(3), {}, "are neither images .* nor vectors"),
        ("cfn", gym.spaces.Box(0, 1, (84, 84, 3), np.float32), {}, "are neither images .* nor vectors"),
        ("cfn", gym.spaces.Box(0, 255, (3, 84, 84), np.uint8), {}, "have their channels first"),
        ("rnd", gym.spaces.Box(0, 255, (4, 84, 84), np.uint8), {}, "have their channels first"),
        ("pixelcnn", gym.spaces.Box(0, 255, (1, 84, 84), np.uint8), {}, "have their channels first"),
        ("pixelcnn", VECTORS, {}, "models grey images"),
        ("cfn", gym.spaces.Dict(a=VECTORS, b=IMAGES), {}, r"have the entries a, b: choose one"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(name, space, keys, message):
    with pytest.raises(ValueError, match=message):
        make_bonus(name, space, **keys)
