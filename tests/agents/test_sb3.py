"""Agents of Stable-Baselines3 in the loop of this package, against the library's own `learn`."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from counting import Walk

pytest.importorskip("stable_baselines3")
from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env

from cfn.agents.sb3 import SB3Agent
from cfn.envs.batch import EnvBatch
from cfn.errors import BadValueError

IMAGES = gym.spaces.Box(0, 255, (40, 40), np.uint8)


class Pull(Walk):
    """A walk with continuous actions: positive ones move on."""

    def __init__(self):
        super().__init__(numbered=False)
        self.action_space = gym.spaces.Box(-2, 2, (1,), np.float32)

    def step(self, action):
        return super().step(int(np.asarray(action).item() > 0))


def walk():
    return Walk(numbered=False)


def drive(agent, env, steps, num_envs=1):
    """The loop of `cfn train`, without a bonus."""
    envs = EnvBatch(env, num_envs, seed=0)
    for step in range(num_envs, steps + 1, num_envs):
        observations, _ = envs.begin_episodes()
        actions = agent.act(observations)
        following, _, rewards, terminated, truncated = envs.step(actions)
        agent.observe(observations, actions, rewards, following, terminated, truncated)
        for _ in range(step // agent.update_period - (step - num_envs) // agent.update_period):
            metrics = agent.update()
    return metrics


def weights(model):
    return [parameter.detach().clone() for parameter in model.policy.parameters()]


CASES = {
    "DQN": (DQN, walk, 1, {"learning_starts": 20, "batch_size": 8, "target_update_interval": 30}),
    "PPO": (PPO, walk, 2, {"n_steps": 16, "batch_size": 8, "n_epochs": 2}),
    "SAC": (SAC, Pull, 1, {"learning_starts": 20, "batch_size": 8}),
    "PPO continuous": (PPO, Pull, 1, {"n_steps": 32, "batch_size": 8, "n_epochs": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_it_learns_exactly_what_the_library_learns(case):
    algorithm, env, num_envs, keys = CASES[case]
    keys = {**keys, "policy_kwargs": {"net_arch": [8]}}
    theirs = (
        algorithm("MlpPolicy", make_vec_env(env, num_envs), seed=3, buffer_size=128, **keys)
        if (algorithm is not PPO)
        else algorithm("MlpPolicy", make_vec_env(env, num_envs), seed=3, **keys)
    )
    theirs.learn(128)
    one = env()
    name = case.split()[0]
    mine = SB3Agent(one.observation_space, one.action_space, 3, "cpu", num_envs, 128, name, kwargs=keys)
    before = weights(mine._model)
    drive(mine, env, 128, num_envs)
    after = weights(mine._model)
    assert any((a != b).any() for a, b in zip(before, after, strict=True))
    assert all((a == b).all() for a, b in zip(after, weights(theirs), strict=True))


def test_td3_explores_with_noise_and_reports_its_metrics():
    env = Pull()
    keys = {"learning_starts": 10, "batch_size": 8, "policy_kwargs": {"net_arch": [8]}}
    agent = SB3Agent(env.observation_space, env.action_space, algorithm="TD3", steps=40, kwargs=keys)
    metrics = drive(agent, Pull, 40)
    assert "agent/critic_loss" in metrics
    observation = np.ones((1, 2), np.float32)
    assert len({agent.act(observation).item() for _ in range(4)}) == 4
    assert len({agent.act(observation, explore=False).item() for _ in range(4)}) == 1
    assert isinstance(agent._model, TD3)


def test_networks_and_steps_are_saved(caplog):
    env = walk()
    keys = {"n_steps": 16, "batch_size": 8, "policy_kwargs": {"net_arch": [8]}}
    first, second = (
        SB3Agent(env.observation_space, env.action_space, seed, steps=64, algorithm="PPO", kwargs=keys)
        for seed in (1, 2)
    )
    drive(first, walk, 40)
    second.load_state_dict(first.state_dict())
    assert "both begin empty" in caplog.text
    assert all((a == b).all() for a, b in zip(weights(first._model), weights(second._model), strict=True))
    assert second._model.num_timesteps == 40
    drive(second, walk, 32)


@pytest.mark.parametrize(
    ("shape", "policy"), [((40, 40), "CnnPolicy"), ((21, 21), "MlpPolicy"), ((36, 50, 4), "CnnPolicy")]
)
def test_images_are_taken(shape, policy):
    space = gym.spaces.Box(0, 255, shape, np.uint8)
    agent = SB3Agent(space, gym.spaces.Discrete(3), algorithm="PPO", kwargs={"n_steps": 4, "batch_size": 4})
    assert agent._convert.policy == policy
    images = np.stack([space.sample() for _ in range(2)])
    converted = agent._convert(images)
    assert agent._convert.space.contains(converted[0])
    assert set(agent.act(images, explore=False)) <= {0, 1, 2}
    if policy == "CnnPolicy":
        assert (converted[:, 0] == (images if images.ndim == 3 else images[..., 0])).all()
    else:
        assert torch.allclose(torch.as_tensor(converted[1] * 255), torch.as_tensor(images[1].ravel()).float())


def test_what_does_not_fit_is_refused_with_a_sentence():
    with pytest.raises(
        BadValueError, match=r"algorithm: SAC cannot be used here \(The algorithm only supports .*choose"
    ):
        SB3Agent(IMAGES, gym.spaces.Discrete(2), algorithm="SAC")
    small = gym.spaces.Box(0, 255, (21, 21), np.uint8)
    with pytest.raises(BadValueError, match="policy: CnnPolicy needs images of at least 36x36 pixels"):
        SB3Agent(small, gym.spaces.Discrete(2), policy="CnnPolicy")


def test_a_run_trains_evaluates_and_resumes(call, run_folders):
    keys = "agent.kwargs={n_steps: 16, batch_size: 16, policy_kwargs: {net_arch: [8]}}"
    common = (
        "agent=sb3",
        "agent.algorithm=PPO",
        keys,
        "num_envs=2",
        "tracker=none",
        "pictures=false",
        "bonus=count",
        "env.max_steps=20",
    )
    done = call("train", *common, "steps=80", "eval.every=40", "checkpoint.every=40", "pictures=false")
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert "agent/value_loss" in (folder / "metrics.jsonl").read_text()
    done = call("resume", folder, "steps=120")
    assert done.returncode == 0, done.stderr
    assert "agent=sb3: checkpoints have no replay buffer" in done.stdout
    assert '"step": 120' in (folder / "metrics.jsonl").read_text()
