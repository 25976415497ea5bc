"""`agent=auto`: the environment's actions choose the agent."""

import json

import pytest
import yaml
from composing import composed

from cfn.envs.gridworld import Gridworld
from cfn.errors import UsageError

SHORT = ("steps=40", "eval.every=40", "eval.episodes=1", "tracker=none", "pictures=false", "threads=1")


@pytest.mark.parametrize(
    ("overrides", "agent"),
    [
        (["env=gym", "env.id=CartPole-v1"], "rainbow"),
        (["env=gym", "env.id=Pendulum-v1"], "sac"),
        (["env=gym", "env.id=Pendulum-v1", "agent=random"], "random"),
        (["env=gridworld", "agent=auto"], "rainbow"),
        (["env=fetch_reach", "agent=auto"], "sac"),
        (["env=gridworld"], "rainbow"),
    ],
)
def test_the_actions_choose_the_agent_unless_the_command_names_it(overrides, agent):
    config, _ = composed(*overrides)
    assert config.agent.name == agent
    assert agent in config.agent.target.__module__


def test_keys_of_the_agent_are_those_of_the_chosen_one():
    discrete, _ = composed("env=gym", "env.id=CartPole-v1", "agent.lr=0.25", "agent.atoms=11")
    assert (discrete.agent.keys["lr"], discrete.agent.keys["atoms"], discrete.agent.keys["gamma"]) == (0.25, 11, 0.99)
    assert composed("env=gym", "env.id=Pendulum-v1", "agent.lr=0.25")[0].agent.keys["lr"] == 0.25
    with pytest.raises(UsageError, match=r"^agent\.atoms is not a key: the keys of agent=sac are batch_size"):
        composed("env=gym", "env.id=Pendulum-v1", "agent.atoms=11")


def test_another_agent_for_a_kind_of_actions_can_be_named():
    config, _ = composed("env=gym", "env.id=CartPole-v1", "agent@agent.discrete=random")
    assert config.agent.name == "random"


def test_an_environment_is_constructed_once_more(monkeypatch):
    made = []
    construct = Gridworld.__init__
    monkeypatch.setattr(Gridworld, "__init__", lambda self, **keys: (made.append(keys), construct(self, **keys))[1])
    for _ in range(2):
        composed("env=gridworld", "agent=auto", "env.max_steps=151")
    composed("env=gridworld", "agent=rainbow")
    assert [keys["max_steps"] for keys in made] == [151]


@pytest.mark.thorough
def test_the_run_has_the_name_and_the_keys_of_the_chosen_agent(call, run_folders):
    done = call("train", "env=gym", "env.id=CartPole-v1", "agent.hidden=[16]", *SHORT)
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert folder.parts[-4:-2] == ("CartPole-v1", "rainbow-none")
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["agent"], summary["setting"]) == ("rainbow", "CartPole-v1/rainbow-none agent.hidden=-16-")
    config, hydra, overrides = (
        yaml.safe_load((folder / ".hydra" / f"{name}.yaml").read_text()) for name in ("config", "hydra", "overrides")
    )
    assert config["agent"]["_target_"] == "cfn.agents.rainbow.RainbowAgent"
    assert config["agent"]["hidden"] == [16]
    assert {name: option for name, option in hydra["hydra"]["runtime"]["choices"].items() if "agent" in name} == {
        "agent": "rainbow"
    }
    assert overrides == ["env=gym", "env.id=CartPole-v1", "agent.hidden=[16]", *SHORT]


@pytest.mark.thorough
def test_each_run_of_a_sweep_chooses(call, run_folders):
    done = call("train", "-m", "env=gym", "env.id=CartPole-v1,Pendulum-v1", "agent.min_size=20", *SHORT)
    assert done.returncode == 0, done.stderr
    assert [folder.parts[-4:-2] for folder in run_folders()] == [
        ("CartPole-v1", "rainbow-none"),
        ("Pendulum-v1", "sac-none"),
    ]


MINE = """
import gymnasium as gym
import numpy as np

class Mine(gym.Env):
    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.MultiDiscrete([2, 3])
    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}
"""


def test_actions_that_no_agent_takes_are_refused_by_name(call, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "my_conf" / "env").mkdir(parents=True)
    (tmp_path / "my_conf" / "env" / "mine.yaml").write_text("_target_: mine.Mine\n")
    done = call("train", "--config-dir", "my_conf", "env=mine", "agent=auto", "tracker=none", "pictures=false")
    assert done.returncode == 1
    assert "MultiDiscrete([2 3])" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("outputs/*"))
