import gymnasium as gym
import numpy as np
import pytest

from cfn.agents.base import Agent
from cfn.bonuses.base import Bonus
from cfn.envs.gridworld import RIGHT, UP, Gridworld
from cfn.training.evaluation import play_episodes, predicted_bonus
from cfn.training.visit_counts import VisitCounts


class ToTheGoal(Agent):
    """Right until the border, then up, whatever the size of the grid's cells."""

    def act(self, observations, explore=True):
        assert not explore
        at_border = observations[:, :, -1].any(axis=1)
        return np.where(at_border, UP, RIGHT)


def test_every_environment_plays_one_whole_episode():
    envs = [Gridworld(size=size, image_size=12, max_steps=limit) for size, limit in [(4, 50), (3, 50), (6, 50), (6, 7)]]
    progress = []
    on_step = lambda ended, steps: progress.append((ended, steps))  # noqa: E731
    returns, lengths = play_episodes(ToTheGoal(), envs, [1, 2, 3, 4], 100, on_step)
    assert returns == [1.0, 1.0, 1.0, 0.0]
    assert lengths == [6, 4, 10, 7], "episodes end at different times, and none is cut short by another"
    assert progress[:2] == [(0, 0), (0, 4)]
    assert progress[-1] == (3, 26)


def test_episodes_are_cut_at_the_limit():
    envs = [Gridworld(size=size, image_size=12, max_steps=50) for size in (3, 6)]
    returns, lengths = play_episodes(ToTheGoal(), envs, [1, 2], 5, lambda ended, steps: None)
    assert (returns, lengths) == ([1.0, 0.0], [4, 5])


class FirstNumber(Bonus):
    def observe(self, observations, visits=None):
        raise AssertionError("an evaluation must not be a visit")

    def novelty(self, observations, states=None):
        assert len(observations) == len(states) <= 1024
        return observations[:, 0] + np.array([state[0] for state in states])


@pytest.mark.parametrize("states", [1, 1023, 1024, 1025, 3000])
def test_the_bonus_is_asked_about_every_state(states):
    truth = VisitCounts(gym.spaces.Box(0, 1e9, (1,), np.float64))
    for i in range(states):
        truth.visit([(i,)], np.array([[float(i)]]))
    assert (predicted_bonus(FirstNumber(), truth) == 2 * np.arange(states)).all()
