"""Does it learn? The commands that the README promises something of, whole; minutes each."""

import numpy as np
import pytest
from composing import composed
from metrics import rows

from cfn.envs.gridworld import MOVES

TIMEOUT = 3600
"""Seconds: what takes minutes on an idle machine may take an hour on another."""


def returns(folder):
    return [row["train/return"] for row in rows(folder) if "train/return" in row]


@pytest.mark.slow
def test_the_bare_command_finds_the_goal_and_without_the_bonus_does_not(cfn, run_folders):
    done = cfn("train", "-m", "bonus=cfn,none", "tracker=none", timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    with_bonus, without = (returns(folder) for folder in run_folders())
    assert sum(with_bonus[-20:]) >= 18
    assert sum(without) == 0


@pytest.mark.slow
def test_the_bare_command_ends_well_for_every_seed(cfn, run_folders):
    """The goal is found early, and a policy that no longer learns reaches it."""
    done = cfn("train", "-m", "seed=0,9,100", "tracker=none", timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    last = []
    for folder in run_folders():
        goals = [row["step"] for row in rows(folder) if row.get("train/return", 0) > 0]
        assert goals[0] < 3000
        last += [row["eval/return"] for row in rows(folder) if "eval/return" in row][-3:]
    assert np.mean(last) >= 0.9


@pytest.mark.slow
def test_rainbow_balances_a_pole(cfn, run_folders):
    done = cfn("train", "env=gym", "env.id=CartPole-v1", "steps=30000", "tracker=none", timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert max(row["eval/return"] for row in rows(folder) if "eval/return" in row) >= 450


@pytest.mark.slow
def test_sac_swings_a_pendulum_up(cfn, run_folders):
    done = cfn("train", "env=gym", "env.id=Pendulum-v1", "agent=sac", "steps=20000", "tracker=none", timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert max(row["eval/return"] for row in rows(folder) if "eval/return" in row) >= -250


@pytest.mark.slow
def test_sac_reaches_with_a_robots_arm(cfn, run_folders):
    """A sixtieth of the paper's steps needs a larger learning rate and larger rewards than the paper's."""
    done = cfn(
        "train", "env=fetch_reach", "bonus=none", "steps=30000", "agent.lr=1e-3", "agent.reward_scale=10",
        "eval.every=5000", "eval.episodes=20", "tracker=none", timeout=TIMEOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert max(row["eval/return"] for row in rows(folder) if "eval/return" in row) >= 0.9


def test_a_random_walk_practically_never_reaches_the_goal_of_the_bare_command():
    """The probability, exactly: where a random walk is after each step of an episode, the goal keeping what arrives."""
    config, _ = composed()
    size, limit = config.env.keys["size"], config.env.keys["max_steps"]
    place, arrived = np.zeros((size, size)), 0.0
    place[0, 0] = 1
    for _ in range(limit):
        moved = np.zeros_like(place)
        for dx, dy in MOVES:
            x, y = (np.clip(np.arange(size) + d, 0, size - 1) for d in (dx, dy))
            np.add.at(moved, np.ix_(x, y), place / len(MOVES))
        arrived += moved[-1, -1]
        moved[-1, -1] = 0
        place = moved
    assert arrived == pytest.approx(9.6e-7, rel=0.01)
    assert arrived * config.steps / limit < 1e-3
