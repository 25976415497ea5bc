import sys

import gymnasium as gym
import numpy as np
import pytest

from cfn.envs.batch import BrokenEnvError, EnvBatch
from cfn.envs.gridworld import LEFT, RIGHT, UP, Gridworld
from cfn.errors import UsageError


def small(**keys):
    return Gridworld(**{"size": 3, "image_size": 3, **keys})


def test_the_last_observation_of_an_episode_is_its_own():
    envs = EnvBatch(small, num_envs=2, seed=0)
    observations, states = envs.begin_episodes()
    assert states == [(0, 0), (0, 0)]
    for actions in ([RIGHT, RIGHT], [RIGHT, RIGHT], [UP, LEFT], [UP, LEFT]):
        observations, states = envs.begin_episodes()
        end = envs.step(np.array(actions))
    assert end.terminated.tolist() == [True, False]
    assert end.rewards.tolist() == [1.0, 0.0]
    assert np.argwhere(end.next_observations[0]).tolist() == [[2, 2]], "the goal, not the next episode's start"
    observations, states = envs.begin_episodes()
    assert states == [(0, 0), (0, 0)]
    assert np.argwhere(observations[0]).tolist() == [[0, 0]]


def test_only_ended_environments_are_restarted():
    envs = EnvBatch(small, num_envs=2, seed=0)
    for actions in ([RIGHT, RIGHT], [RIGHT, UP], [UP, UP], [UP, LEFT]):
        envs.begin_episodes()
        envs.step(np.array(actions))
    assert envs.begin_episodes()[1] == [(0, 0), (0, 2)]


class Seeds(gym.Env):
    """Observes the seed of its episode, and ends after two steps."""

    observation_space = gym.spaces.Box(0, np.inf, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed, self.steps = seed, 0
        return np.array([float(seed)]), {}

    def step(self, action):
        self.steps += 1
        return np.array([float(self.seed)]), 0.0, False, self.steps == 2, {}


def episode_seeds(num_envs, seed, episodes=4):
    envs = EnvBatch(Seeds, num_envs, seed)
    seen = []
    for _ in range(episodes):
        seen.append(envs.begin_episodes()[0][:, 0].tolist())
        for _ in range(2):
            envs.begin_episodes()
            envs.step(np.zeros(num_envs, int))
    return seen


def test_every_episode_has_a_seed_of_its_own_that_can_be_had_again():
    seeds = episode_seeds(3, seed=5)
    assert len({s for row in seeds for s in row}) == 12
    assert seeds == episode_seeds(3, seed=5)
    assert seeds != episode_seeds(3, seed=6)
    assert [row[:2] for row in seeds] == episode_seeds(2, seed=5), "however many environments there are"


def test_an_environment_without_states_reports_none():
    envs = EnvBatch(Seeds, 2, seed=0)
    assert envs.begin_episodes()[1] is None
    envs.step(np.zeros(2, int))
    assert envs.begin_episodes()[1] is None


class ArrayStates(Seeds):
    def reset(self, **keys):
        return super().reset(**keys)[0], {"state": np.array([1, 2])}

    def step(self, action):
        return *super().step(action)[:4], {"state": np.array([3, 4])}


@pytest.mark.parametrize(
    "state", ["here", (1, "two"), {"x": 1}, (0.5, 1.0), [[1, 2], [3, 4]], None, (2**64, 1), 2**63], ids=str
)
def test_states_that_cannot_be_counted_are_refused_at_once(state):
    class Odd(Seeds):
        def reset(self, **keys):
            return super().reset(**keys)[0], {"state": state}

    with pytest.raises(UsageError, match=r"must consist of whole numbers"):
        EnvBatch(Odd, 2, seed=0).begin_episodes()


class LaterState(Seeds):
    """Begins in the state (0, 1) and reports another one after each step."""

    later: object = (2, 3)

    def reset(self, **keys):
        return super().reset(**keys)[0], {"state": (0, 1)}

    def step(self, action):
        return *super().step(action)[:4], {"state": self.later}


@pytest.mark.parametrize("state", [(True, 2.0), (np.bool_(True), np.int64(2)), [1, 2], np.array([1.0, 2.0])], ids=str)
def test_every_state_becomes_a_tuple_of_integers(monkeypatch, state):
    monkeypatch.setattr(LaterState, "later", state)
    envs = EnvBatch(LaterState, 1, seed=0)
    envs.begin_episodes()
    (reported,) = envs.step(np.zeros(1, int)).next_states
    assert reported == (1, 2)
    assert [type(number) for number in reported] == [int, int]


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ((0.5, 1.0), "must consist of whole numbers"),
        ((2**70, 1), "must consist of whole numbers"),
        ((1, 2, 3), r"is \(1, 2, 3\) after \(0, 1\): every true state must have the same length"),
    ],
    ids=str,
)
def test_a_later_state_that_cannot_be_counted_is_refused(monkeypatch, state, sentence):
    monkeypatch.setattr(LaterState, "later", state)
    envs = EnvBatch(LaterState, 1, seed=0)
    envs.begin_episodes()
    with pytest.raises(UsageError, match=sentence):
        envs.step(np.zeros(1, int))


def test_states_may_be_arrays_and_become_tuples():
    envs = EnvBatch(ArrayStates, 2, seed=0)
    assert envs.begin_episodes()[1] == [(1, 2), (1, 2)]
    envs.step(np.zeros(2, int))
    assert envs.begin_episodes()[1] == [(3, 4), (3, 4)]


class Fragile(Seeds):
    """Cannot begin episodes with some seeds."""

    bad: tuple[int, ...] = ()

    def reset(self, *, seed=None, options=None):
        if seed in self.bad:
            raise RuntimeError("it does not begin")
        return super().reset(seed=seed)


def test_an_episode_that_cannot_be_begun_makes_room_for_the_one_after(monkeypatch, caplog):
    first, second, *_ = (int(row[0]) for row in episode_seeds(1, seed=0))
    monkeypatch.setattr(Fragile, "bad", (first,))
    faults = []
    envs = EnvBatch(Fragile, 1, seed=0, on_fault=faults.append)
    assert envs.begin_episodes()[0].tolist() == [[second]]
    assert envs.failures == 1
    sentence = "environment 0 of 1 failed in reset() (RuntimeError: it does not begin)"
    assert [str(fault) for fault in faults] == [sentence]
    assert sentence[1:] in caplog.text
    other = EnvBatch(Seeds, 1, seed=0)
    other.load_state_dict(envs.state_dict())
    assert not other.lost.any(), "it is known which episode was begun"


def test_an_environment_that_begins_no_episode_is_given_up_and_nothing_is_lost(monkeypatch):
    envs = EnvBatch(Fragile, 2, seed=0)
    for _ in range(2):
        envs.begin_episodes()
        envs.step(np.zeros(2, int))
    with monkeypatch.context() as patch:
        patch.setattr(Fragile, "reset", lambda env, **_: 1 / 0)
        with pytest.raises(BrokenEnvError, match=r"environment 0 of 2 failed in reset\(\) \(ZeroDivisionError"):
            envs.begin_episodes()
        state = envs.state_dict()
    other = EnvBatch(Fragile, 2, seed=0)
    other.load_state_dict(state)
    assert (other.begin_episodes()[0] == envs.begin_episodes()[0]).all(), "both begin where they were"


def test_an_environment_that_cannot_be_made_anew_is_a_sentence(monkeypatch):
    made = []

    def make():
        made.append(1)
        return Fragile() if len(made) == 1 else 1 / 0

    envs = EnvBatch(make, 1, seed=0)
    envs.begin_episodes()
    monkeypatch.setattr(Fragile, "step", lambda env, action: [][0])
    with pytest.raises(UsageError, match=r"environment 0 of 1 cannot be created again after it failed \(ZeroDivision"):
        envs.step(np.zeros(1, int))


class Drifting(Seeds):
    """Observes its seed and its steps, and does not always do so alike."""

    drift, length, broken = 0, 5, False

    def step(self, action):
        self.steps += 1
        if self.broken:
            raise RuntimeError("it broke")
        return np.array([float(self.seed + self.steps + self.drift)]), 0.0, False, self.steps == self.length, {}


@pytest.mark.parametrize(
    ("change", "value", "lost"), [("drift", 0, False), ("drift", 1, True), ("length", 2, True), ("broken", True, True)]
)
def test_an_environment_that_cannot_be_brought_back_begins_a_new_episode(monkeypatch, caplog, change, value, lost):
    envs = EnvBatch(Drifting, 2, seed=0)
    for _ in range(3):
        envs.begin_episodes()
        envs.step(np.zeros(2, int))
    state, (before, _) = envs.state_dict(), envs.begin_episodes()
    monkeypatch.setattr(Drifting, change, value)
    other = EnvBatch(Drifting, 2, seed=0)
    other.load_state_dict(state)
    assert other.lost.tolist() == [lost, lost]
    assert ("Environment 1 could not be restored" in caplog.text) == lost
    after, _ = other.begin_episodes()
    if lost:
        assert [env.steps for env in other.copies.envs.values()] == [0, 0]
        assert not np.isin(after, before).any()
        assert other._episodes.tolist() == [2, 2]
    else:
        assert (after == before).all()


class Careless(Seeds):
    """Returns what Gymnasium accepts with a warning: lists as observations, and other kinds of rewards."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    answer, reward = [0.25, 1], 0.5

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return [0, 0.5], {}

    def step(self, action):
        return self.answer, self.reward, False, False, {}


@pytest.mark.parametrize("reward", [0.5, np.float32(0.5), np.array(0.5), np.array([0.5])])
def test_lists_and_rewards_of_one_number_are_taken_and_replayed(reward):
    def make():
        env = Careless()
        env.reward = reward
        return env

    envs, resumed = EnvBatch(make, num_envs=2, seed=0), EnvBatch(make, num_envs=2, seed=0)
    first, _ = envs.begin_episodes()
    end = envs.step(np.zeros(2, int))
    assert first.dtype == end.next_observations.dtype == np.float32
    assert (first.tolist(), end.next_observations.tolist()) == ([[0, 0.5]] * 2, [[0.25, 1]] * 2)
    assert end.rewards.tolist() == [0.5, 0.5]
    resumed.load_state_dict(envs.state_dict())
    assert not resumed.lost.any()


@pytest.mark.parametrize(
    ("answer", "reward", "reason"),
    [
        ([0.0, 0.0, 0.0], 0.0, r"its observation has the shape \(3,\), and its observation space \(2,\)"),
        ([0.0, np.nan], 0.0, "its observation holds NaN or infinity"),
        ([0.0, 0.0], None, "its reward is None, and a reward is one number"),
        ([0.0, 0.0], -1e39, r"its reward is -1e\+39"),
    ],
)
def test_what_no_replay_buffer_can_hold_is_the_environments_fault(answer, reward, reason):
    def make():
        env = Careless()
        env.answer, env.reward = answer, reward
        return env

    faults = []
    envs = EnvBatch(make, 1, 0, faults.append)
    envs.begin_episodes()
    end = envs.step(np.zeros(1, int))
    assert end.truncated.all()
    with pytest.raises(BrokenEnvError, match=reason):
        raise faults[0]


@pytest.mark.parametrize("reward", [np.zeros(2), [1.0, 2.0]], ids=["array", "list"])
def test_several_rewards_are_refused_at_once(reward):
    """Resuming with a new instance of the environment could not help."""

    def make():
        env = Careless()
        env.answer, env.reward = [0.0, 0.0], reward
        return env

    envs = EnvBatch(make, 1, 0)
    envs.begin_episodes()
    with pytest.raises(UsageError, match="a reward is one number: wrap the environment") as caught:
        envs.step(np.zeros(1, int))
    assert not isinstance(caught.value, BrokenEnvError)


class Exiting(Seeds):
    """Calls sys.exit in every step and when it is closed; its class also when it is created again."""

    made = 0

    def __init__(self, constructions=2):
        type(self).made += 1
        if type(self).made > constructions:
            sys.exit("no more")

    def step(self, action):
        sys.exit("the simulator has gone")

    def close(self):
        sys.exit("closed")


@pytest.mark.parametrize(
    ("constructions", "problem"), [(2, None), (1, "cannot be created again .*SystemExit: no more")]
)
def test_sys_exit_is_a_fault_of_the_environment(constructions, problem, monkeypatch):
    monkeypatch.setattr(Exiting, "made", 0)
    faults = []
    envs = EnvBatch(lambda: Exiting(constructions), 1, 0, faults.append)
    envs.begin_episodes()
    if problem:
        with pytest.raises(UsageError, match=problem):
            envs.step(np.zeros(1, int))
    else:
        assert envs.step(np.zeros(1, int)).truncated.all()
        assert "SystemExit: the simulator has gone" in str(faults[0])
    envs.close()
