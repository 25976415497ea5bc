import numpy as np
import pytest
from counting import FIELDS, Diary, Walk, plain_visits

pytest.importorskip("stable_baselines3")

from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import SubprocVecEnv

from cfn import make_bonus
from cfn.bonuses.counts import CountBonus
from cfn.wrappers.stable_baselines3 import VecBonus


def small_bonus(venv):
    keys = {"min_size": 10, "batch_size": 8, "capacity": 500, "d": 4, "hidden": [8], "update_period": 4}
    return make_bonus("cfn", venv.observation_space, **keys)


def small_dqn(venv):
    return DQN("MlpPolicy", venv, seed=0, learning_starts=10, batch_size=8, policy_kwargs={"net_arch": [8]})


def wander(venv, steps):
    rng = np.random.default_rng(0)
    actions = rng.integers(2, size=(steps, venv.num_envs))
    venv.reset()
    return actions, [venv.step(row) for row in actions]


def test_every_visit_is_counted_once_as_in_a_plain_loop():
    diary = Diary()
    actions, results = wander(VecBonus(make_vec_env(Walk, 3), diary), 60)
    for i in range(3):
        assert diary.of(i, *FIELDS) == plain_visits(actions[:, i])
    for _, rewards, _, infos in results:
        parts = [info["extrinsic_reward"] + info["intrinsic_reward"] for info in infos]
        assert rewards.tolist() == pytest.approx(parts)
        assert all(info["intrinsic_reward"] >= 10 for info in infos)


def test_environments_in_processes_share_the_bonus():
    diary = Diary()
    venv = VecBonus(make_vec_env(Walk, 2, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "fork"}), diary)
    actions, _ = wander(venv, 12)
    venv.close()
    assert [diary.of(i, *FIELDS) for i in (0, 1)] == [plain_visits(actions[:, i]) for i in (0, 1)]


def test_an_oracle_sees_true_states():
    venv = VecBonus(make_vec_env(Walk, 2), CountBonus(scale=1.0))
    venv.reset()
    assert [info["intrinsic_reward"] for info in venv.step(np.array([0, 0]))[3]] == [2**-0.5] * 2


@pytest.mark.parametrize("algorithm", [DQN, PPO])
def test_algorithms_learn_from_it_and_log_extrinsic_episodes(algorithm):
    venv = VecBonus(make_vec_env(Walk, 2), Diary())
    keys = {"learning_starts": 10} if algorithm is DQN else {"n_steps": 64, "batch_size": 32}
    model = algorithm("MlpPolicy", venv, seed=0, **keys)
    logged = {}
    logger = Logger(None, [])
    logger.dump = lambda step=0: logged.update(logger.name_to_value)
    model.set_logger(logger)
    model.learn(400, callback=venv.callback(), log_interval=1)
    assert {"bonus/reward", "bonus/loss", "rollout/ep_rew_mean"} <= logged.keys()
    assert logged["bonus/loss"] == 2
    assert logged["bonus/reward"] >= 10
    assert 0 <= logged["rollout/ep_rew_mean"] <= 1, "without the bonus, which is at least 10 per step"


def test_agent_and_bonus_are_saved_and_continue_exactly(tmp_path):
    def walk():
        return make_vec_env(Walk, 1, seed=0, env_kwargs={"numbered": False})

    bonus = small_bonus(walk())
    venv = VecBonus(walk(), bonus)
    model = small_dqn(venv)
    model.learn(150)
    model.save(tmp_path / "agent")
    venv.save(tmp_path / "bonus")
    other = VecBonus(walk(), small_bonus(walk()))
    other.load(tmp_path / "bonus")
    loaded = DQN.load(tmp_path / "agent", env=other)
    points = np.random.default_rng(0).uniform(0, 4, (50, 2)).astype(np.float32)
    assert (other.bonus.novelty(points) == bonus.novelty(points)).all()
    assert loaded.num_timesteps == model.num_timesteps
    rewards = [[result[1].item() for result in wander(v, 40)[1]] for v in (venv, other)]
    assert rewards[0] == rewards[1], "observing and learning go on alike"
    assert (other.bonus.novelty(points) == bonus.novelty(points)).all()


def test_wrong_objects_are_refused():
    with pytest.raises(TypeError, match=r"Walk is no VecEnv\. A bonus inside each environment would count"):
        VecBonus(Walk(), Diary())
    venv, diary = make_vec_env(Walk, 1), Diary()
    first = VecBonus(venv, diary)
    with pytest.raises(ValueError, match="used by another wrapper"):
        VecBonus(venv, diary)
    with pytest.raises(ValueError, match=r"call reset\(\) before step\(\)"):
        first.step(np.array([0]))
