import gymnasium as gym
import numpy as np
import pytest
import torch
from counting import FIELDS, Diary, Walk, plain_visits

pytest.importorskip("torchrl")

from torchrl.envs import GymWrapper, SerialEnv, TransformedEnv, check_env_specs

from cfn import make_bonus
from cfn.wrappers.torchrl import BonusTransform

WITHOUT_STATES = [name for name in FIELDS if "state" not in name]


def plain(actions):
    return [(row[0], *row[2:4], *row[5:]) for row in plain_visits(actions)]


def test_every_visit_is_counted_once_as_in_a_plain_loop():
    diary = Diary()
    env = TransformedEnv(SerialEnv(3, lambda: GymWrapper(Walk())), BonusTransform(diary))
    rollout = env.rollout(60, break_when_any_done=False)
    actions = rollout["action"].numpy().argmax(-1)
    for i in range(3):
        assert diary.of(i, *WITHOUT_STATES) == plain(actions[i])
    assert rollout["next", "intrinsic_reward"].shape == (3, 60, 1)
    paid = 10 + rollout["observation"][..., 0].numpy()
    assert (rollout["next", "intrinsic_reward"][..., 0].numpy() == paid).all()
    assert set(rollout["next", "reward"].unique().tolist()) == {0.0, 1.0}, "the reward is as it was"


def test_a_single_environment_and_combined_rewards():
    diary = Diary()
    env = TransformedEnv(GymWrapper(Walk()), BonusTransform(diary, combine=np.add))
    rollout = env.rollout(20, break_when_any_done=False)
    assert diary.of(0, *WITHOUT_STATES) == plain(rollout["action"].numpy().argmax(-1))
    assert (rollout["next", "reward"] >= 10).all()


def test_the_specs_hold():
    check_env_specs(TransformedEnv(SerialEnv(2, lambda: GymWrapper(Walk())), BonusTransform(Diary())))


def test_a_second_rollout_begins_new_episodes():
    diary = Diary()
    env = TransformedEnv(GymWrapper(Walk()), BonusTransform(diary))
    env.rollout(2)
    env.rollout(2)
    assert [row["begins"] for row in diary.visits] == [1, 0, 1, 0]


def test_a_saved_bonus_is_restored(tmp_path):
    def transform():
        space = gym.spaces.Box(0, 4, (2,), np.float32)
        return BonusTransform(make_bonus("cfn", space, min_size=10, batch_size=8, capacity=100, d=4, hidden=[8]))

    first, second = transform(), transform()
    with torch.no_grad():  # as in TorchRL's collectors
        TransformedEnv(GymWrapper(Walk()), first).rollout(30, break_when_any_done=False)
    assert first.take_metrics().keys() == {"bonus/reward", "bonus/loss"}
    first.save(tmp_path / "bonus")
    second.load(tmp_path / "bonus")
    points = np.ones((1, 2), np.float32)
    assert first.bonus.novelty(points) == second.bonus.novelty(points) > 0


def test_one_key_of_each():
    with pytest.raises(ValueError, match="a bonus has one key of each"):
        BonusTransform(Diary(), in_keys=["a", "b"])
