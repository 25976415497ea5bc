import re

import gymnasium as gym
import numpy as np
import pytest

from cfn.envs.batch import EnvBatch
from cfn.envs.episode_reports import EpisodeReports
from cfn.errors import UsageError


class Counting(gym.Env):
    """Episodes of one to three steps, in turn; each reports its length, and on the way what is no report."""

    observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        self.episode = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.length, self.steps = int(self.np_random.integers(1, 4)), 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        truncated = self.steps == self.length
        info = {"episode_metrics": {"explore/length": self.length if truncated else -1000}}
        return np.full(1, self.steps, np.float32), 0.0, False, truncated, info


class Solvable(Counting):
    def is_solved(self, episodes, means):
        return episodes >= 4 and means["explore/length"] < 3


def played(envs, steps):
    """The metrics after each step, and the lengths of all episodes in the order in which they ended."""
    metrics, lengths = [], []
    for _ in range(steps):
        envs.begin_episodes()
        ended = envs.step(np.zeros(2, int))
        lengths += ended.next_observations[ended.truncated].ravel().tolist()
        metrics.append(envs.episode_metrics)
    return metrics, lengths


def test_a_run_has_the_means_over_the_episodes_of_all_environments():
    envs = EnvBatch(Counting, 2, seed=0)
    seen = []
    for _ in range(20):
        (metrics,), lengths = played(envs, 1)
        seen += lengths
        assert metrics == ({"explore/length": pytest.approx(np.mean(seen))} if lengths else {})
    assert len(seen) > 15


def test_the_first_episode_that_solves_the_task_stays():
    metrics, lengths = played(EnvBatch(Solvable, 2, seed=0), 20)
    means = np.cumsum(lengths) / np.arange(1, len(lengths) + 1)
    first = next(n for n in range(4, 21) if means[n - 1] < 3)
    solved = [row["explore/solved_episode"] for row in metrics if "explore/solved_episode" in row]
    assert len(solved) > 3
    assert set(solved) == {first}
    assert "explore/solved_episode" not in metrics[0]


def test_counters_are_restored():
    whole, broken = EnvBatch(Solvable, 2, seed=0), EnvBatch(Solvable, 2, seed=0)
    played(whole, 7)
    played(broken, 7)
    other = EnvBatch(Solvable, 2, seed=0)
    other.load_state_dict(broken.state_dict())
    continued = played(other, 9)
    assert continued == played(whole, 9)
    assert "explore/solved_episode" in continued[0][-1]


def test_checkpoints_of_older_versions_have_no_counters():
    envs = EnvBatch(Counting, 2, seed=0)
    played(envs, 7)
    state = envs.state_dict()
    del state["reports"]
    other = EnvBatch(Counting, 2, seed=0)
    other.load_state_dict(state)
    metrics, lengths = played(other, 3)
    assert metrics[-1] == {"explore/length": pytest.approx(np.mean(lengths))}, "the counters start at zero"


def test_an_environment_that_reports_nothing_has_no_metrics():
    envs = EnvBatch(lambda: gym.make("CartPole-v1"), 2, seed=0)
    assert played(envs, 60)[0] == [{}] * 60
    assert envs.state_dict()["episodes"].min() > 2


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ({"eval/return": 1}, "has the name 'eval/return': choose one that begins with explore/, except"),
        ({"explore/states": 1}, "has the name 'explore/states'"),
        ({"explore/solved_episode": 1}, "has the name 'explore/solved_episode'"),
        ({"explore/x": "many"}, "has explore/x='many': it must be a finite number"),
        ({"explore/x": float("nan")}, "has explore/x=nan: it must be a finite number"),
        ({"explore/y": 1}, "names explore/y after explore/x: report all in each episode"),
        ({}, "names nothing after explore/x"),
    ],
)
def test_what_cannot_be_a_metric_is_refused(report, message):
    reports = EpisodeReports(None)
    reports.add({"explore/x": np.float32(2)})
    with pytest.raises(UsageError, match=re.escape(message)):
        reports.add(report)
    assert reports.metrics == {"explore/x": 2.0}
