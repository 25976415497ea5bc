"""The same stream of visits gives the same bonus, in the loop of `cfn train` and through each wrapper."""

import gymnasium as gym
import numpy as np
import pytest
from composing import composed
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from looping import Looping

from cfn import BonusVectorWrapper, TrueCounts, bonus_errors, make_bonus, seeding
from cfn.agents.random import RandomAgent
from cfn.envs.gridworld import Gridworld

STEPS = 200
KEYS = {"min_size": 50, "batch_size": 16, "capacity": 1000, "d": 8, "channels": [4, 4, 4], "lr": 1e-3}


def grid():
    return Gridworld(size=7, image_size=7, max_steps=30)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A run of `cfn train agent=random`: its bonus and its true counts."""
    keys = [f"bonus.{key}={value}" for key, value in KEYS.items()]
    env = ["env.size=7", "env.image_size=7", "env.max_steps=30"]
    config, _ = composed("agent=random", "tracker=none", "device=cpu", "bonus.normalize=false", *keys, *env)
    go_on = Looping(tmp_path_factory.mktemp("lab"), config)
    go_on(STEPS)
    return go_on.training


def same_bonus():
    return make_bonus("cfn", grid().observation_space, seed=seeding.integer(0, "bonus"), scale=0.0015, **KEYS)


def same_actions():
    agent = RandomAgent(grid().action_space, seeding.integer(0, "agent"))
    return lambda: agent.act(np.zeros((1, 1)))


def assert_counts_alike(lab, bonus):
    counts = lab.visit_counts
    assert len(counts) > 15
    mine, theirs = (b.novelty(counts.examples, counts.states) for b in (bonus, lab.bonus))
    assert bonus_errors(mine, counts.counts) == bonus_errors(theirs, counts.counts)
    assert (mine == theirs).all()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_gymnasium(lab, mode):
    bonus, act = same_bonus(), same_actions()
    envs = BonusVectorWrapper(SyncVectorEnv([grid], autoreset_mode=mode), bonus)
    _, info = envs.reset()
    counts, state, resetting, steps = TrueCounts(grid().observation_space), info["state"][0], False, 0
    while steps < STEPS:
        if not resetting:
            counts.visit([state], np.zeros((1, 7, 7), np.uint8))
        _, _, terminated, truncated, info = envs.step(np.zeros(1, int) if resetting else act())
        steps += not resetting
        resetting = mode is AutoresetMode.NEXT_STEP and bool(terminated[0] | truncated[0])
        state = info["state"][0]
    assert dict(zip(counts.states, counts.counts, strict=True)) == {
        state: count
        for state, count in zip(lab.visit_counts.states, lab.visit_counts.counts, strict=True)
        if count  # the last state of the run was arrived in, not visited
    }
    assert_counts_alike(lab, bonus)


def test_stable_baselines3(lab):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_util import make_vec_env

    from cfn.wrappers.stable_baselines3 import VecBonus

    bonus, act = same_bonus(), same_actions()
    venv = VecBonus(make_vec_env(grid, 1), bonus)
    venv.reset()
    for _ in range(STEPS):
        venv.step(act())
    assert_counts_alike(lab, bonus)


def test_torchrl(lab):
    pytest.importorskip("torchrl")
    import torch
    from torchrl.envs import GymWrapper, TransformedEnv

    from cfn.wrappers.torchrl import BonusTransform

    bonus, act = same_bonus(), same_actions()
    env = TransformedEnv(
        GymWrapper(gym.wrappers.TimeLimit(grid(), 30), from_pixels=False, categorical_action_encoding=True),
        BonusTransform(bonus),
    )

    def policy(tensordict):
        return tensordict.set("action", torch.as_tensor(act()[0]))

    env.rollout(STEPS, policy, break_when_any_done=False)
    assert_counts_alike(lab, bonus)
