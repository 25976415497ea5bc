import gymnasium as gym
import numpy as np
import pytest
from matplotlib.image import imread

from cfn.agents.base import Agent
from cfn.bonuses.base import Bonus
from cfn.envs.gridworld import RIGHT, UP, Gridworld
from cfn.evaluate import ask, play, save_rooms
from cfn.truth import TrueCounts


class ToTheGoal(Agent):
    """Right until the border, then up, whatever the size of the grid's cells."""

    def act(self, observations, explore=True):
        assert not explore
        at_border = observations[:, :, -1].any(axis=1)
        return np.where(at_border, UP, RIGHT)


def test_every_environment_plays_one_whole_episode():
    envs = [Gridworld(size=size, image_size=12, max_steps=limit) for size, limit in [(4, 50), (3, 50), (6, 50), (6, 7)]]
    returns, lengths = play(ToTheGoal(), envs, [1, 2, 3, 4])
    assert returns == [1.0, 1.0, 1.0, 0.0]
    assert lengths == [6, 4, 10, 7], "episodes end at different times, and none is cut short by another"


class FirstNumber(Bonus):
    def observe(self, observations, states=None):
        raise AssertionError("an evaluation must not be a visit")

    def novelty(self, observations, states=None):
        assert len(observations) == len(states) <= 1024
        return observations[:, 0] + np.array([state[0] for state in states])


@pytest.mark.parametrize("states", [1, 1023, 1024, 1025, 3000])
def test_the_bonus_is_asked_about_every_state(states):
    truth = TrueCounts(gym.spaces.Box(0, 1e9, (1,), np.float64))
    for i in range(states):
        truth.visit([(i,)], np.array([[float(i)]]))
    assert (ask(FirstNumber(), truth) == 2 * np.arange(states)).all()


def test_rooms_are_kept_once_and_whole(tmp_path, monkeypatch):
    image = np.arange(16, dtype=np.uint8).reshape(4, 4) * 17
    with monkeypatch.context() as patch:
        patch.setattr("cfn.writing.os.fsync", lambda _: 1 / 0)  # killed before it is on the disk
        with pytest.raises(ZeroDivisionError):
            save_rooms(tmp_path, {3: image})
    assert not (tmp_path / "rooms" / "3.png").exists()
    for seen in (image, np.zeros_like(image)):
        save_rooms(tmp_path, {3: seen})
    assert (imread(tmp_path / "rooms" / "3.png")[..., 0] * 255).round().tolist() == image.tolist()
