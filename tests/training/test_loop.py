"""The loop, against agents and bonuses that write down what they are told."""

import gc
import json
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from asynchrony import pretend_gpu
from metrics import rows

from cfn.agents.base import Agent
from cfn.agents.rainbow import RainbowAgent
from cfn.bonuses.base import Bonus
from cfn.bonuses.coin_flip import CoinFlipBonus
from cfn.bonuses.none import NoBonus
from cfn.config import Component, Config, Eval
from cfn.envs.gridworld import Gridworld
from cfn.errors import UsageError
from cfn.nn import device
from cfn.runs.folder import Run
from cfn.tracking.base import Tracker
from cfn.training import evaluation
from cfn.training.loop import Training, clip

SIZE, LIMIT = 3, 5


def make_env(render_mode=None):
    return Gridworld(size=SIZE, image_size=SIZE, max_steps=LIMIT)


class Scripted(Agent):
    """Acts at random and remembers everything."""

    def __init__(self, observation_space, action_space, seed, update_period=1):
        self.rng = np.random.default_rng(seed)
        self.update_period = update_period
        self.seen = []
        self.updates = 0

    def act(self, observations, explore=True):
        return self.rng.integers(4, size=len(observations)) if explore else np.zeros(len(observations), int)

    def observe(self, *transition):
        self.seen.append([np.array(part) for part in transition])

    def update(self):
        self.updates += 1
        return {"agent/loss": float(self.updates)}


class Remembering(Bonus):
    """Pays 10 x + y of the state, and remembers what it was told of."""

    def __init__(self, observation_space, seed, update_period=1):
        self.update_period = update_period
        self.visits, self.contexts = [], []
        self.updates = 0

    def observe(self, observations, visits=None):
        self.visits += list(zip(observations.copy(), visits.states, strict=True))
        self.contexts.append(visits)
        return np.array([10 * x + y for x, y in visits.states], float)

    def novelty(self, observations, states=None):
        return np.array([len(self.visits) / (1 + x + y) for x, y in states], float)

    def update(self):
        self.updates += 1
        return {}


def train(
    tmp_path,
    num_envs=1,
    steps=60,
    every=20,
    episodes=2,
    eval_steps=0,
    clip=None,
    extrinsic_clip=None,
    env=make_env,
    agent_class=Scripted,
    bonus_class=None,
    threads=None,
    **periods,
):
    config = Config(
        env=Component("env", "grid", env, {}),
        agent=Component("agent", "scripted", agent_class, {"update_period": periods.get("agent", 1)}),
        bonus=Component("bonus", "none", bonus_class, {})
        if bonus_class
        else Component("bonus", "remembering", Remembering, {"update_period": periods.get("bonus", 1)}),
        tracker=Component("tracker", "none", Tracker, {}),
        steps=steps,
        seed=0,
        num_envs=num_envs,
        frame_stack=1,
        reward_clip=clip,
        extrinsic_clip=extrinsic_clip,
        device="cpu",
        threads=threads,
        eval=Eval(every, episodes, eval_steps),
        outputs="outputs",
    )
    run = Run(tmp_path, "grid", "scripted", "remembering", 0, "grid/scripted", {"steps": steps, "env": {"size": SIZE}})
    run.claim({}, [])
    training = Training(config)
    training.run(run)
    return training


def state_of(image):
    row, column = np.argwhere(image)[0]
    return int(column), int(row)


@pytest.mark.parametrize("num_envs", [1, 4])
def test_the_bonus_belongs_to_the_state_acted_in_and_ends_are_the_episodes_own(tmp_path, num_envs):
    training = train(tmp_path, num_envs, steps=400)
    place, age = [(0, 0)] * num_envs, [0] * num_envs
    ends = {"terminated": 0, "truncated": 0}
    for observations, actions, rewards, next_observations, terminated, truncated in training.agent.seen:
        for i in range(num_envs):
            assert state_of(observations[i]) == place[i]
            dx, dy = ((-1, 0), (1, 0), (0, 1), (0, -1))[actions[i]]
            x, y = place[i]
            after = (min(max(x + dx, 0), SIZE - 1), min(max(y + dy, 0), SIZE - 1))
            age[i] += 1
            goal = after == (SIZE - 1, SIZE - 1)
            assert state_of(next_observations[i]) == after, "never the first observation of the next episode"
            assert rewards[i] == goal + 10 * x + y
            assert (terminated[i], truncated[i]) == (goal, not goal and age[i] == LIMIT)
            ends["terminated"] += terminated[i]
            ends["truncated"] += truncated[i]
            if terminated[i] or truncated[i]:
                place[i], age[i] = (0, 0), 0
            else:
                place[i] = after
    assert ends["terminated"] > 0
    assert ends["truncated"] > 0


@pytest.mark.parametrize("num_envs", [1, 4])
def test_the_bonus_is_told_of_the_whole_step(tmp_path, num_envs):
    training = train(tmp_path, num_envs, steps=400)
    begins = np.ones(num_envs, bool)
    contexts = training.bonus.contexts
    assert len(contexts) == 400 // num_envs
    for visits, (_, actions, _, next_observations, terminated, truncated) in zip(
        contexts, training.agent.seen, strict=True
    ):
        assert visits.begins.tolist() == begins.tolist()
        assert (visits.actions == actions).all()
        assert (visits.next_observations == next_observations).all()
        assert (visits.terminated == terminated).all()
        assert (visits.truncated == truncated).all()
        begins = terminated | truncated


def test_truth_and_bonus_hear_of_the_same_visits_and_evaluations_are_not_among_them(tmp_path):
    training = train(tmp_path, num_envs=2, steps=200)
    visits = [state for _, state in training.bonus.visits]
    assert len(visits) == 200
    counts = dict(zip(training.visit_counts.states, training.visit_counts.counts.tolist(), strict=True))
    assert {state: visits.count(state) for state in counts} == counts
    assert sum(counts.values()) == training.visit_counts.arrivals.sum() == 200
    assert len(training.agent.seen) == 100
    assert all(state_of(image) == state for image, state in training.bonus.visits)


def test_how_often_it_is_evaluated_changes_nothing_in_training(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    often, seldom = train(tmp_path / "a", every=3, steps=90), train(tmp_path / "b", every=90, steps=90, episodes=5)
    for one, other in zip(often.agent.seen, seldom.agent.seen, strict=True):
        assert all((a == b).all() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("num_envs", [1, 3, 4])
@pytest.mark.parametrize("period", [1, 2, 4, 7])
def test_the_ratio_of_updates_to_steps_is_kept(tmp_path, num_envs, period):
    training = train(tmp_path, num_envs, steps=84, agent=period, bonus=1)
    assert training.agent.updates == 84 // period
    assert training.bonus.updates == 84


def test_evaluations_come_when_they_are_due_and_at_the_end(tmp_path):
    train(tmp_path, num_envs=3, steps=50, every=20)
    evaluated = [row["step"] for row in rows(tmp_path) if "eval/return" in row]
    assert evaluated == [21, 42, 51], "steps are summed over environments; the last batch may pass the end"
    assert sorted(path.name for path in (tmp_path / "counts").iterdir()) == [f"step_{s:09}.csv" for s in evaluated]


def test_evaluations_can_be_switched_off(tmp_path):
    training = train(tmp_path, steps=50, every=None)
    assert training.step == 50
    assert not any("eval/return" in row or "bonus/mse" in row for row in rows(tmp_path))
    assert list((tmp_path / "counts").iterdir()) == []


def test_evaluations_play_as_many_episodes_as_asked_each_with_a_seed_of_its_own(tmp_path, monkeypatch):
    played = []
    monkeypatch.setattr(
        evaluation, "play_episodes", lambda agent, envs, seeds, *_: (played.append(list(seeds)), ([0.0], [1]))[1]
    )
    train(tmp_path, steps=40, every=20, episodes=3)
    assert [len(seeds) for seeds in played] == [3, 3]
    assert len({seed for seeds in played for seed in seeds}) == 6


def test_evaluations_go_on_until_enough_steps_are_played(tmp_path, monkeypatch):
    played = []
    monkeypatch.setattr(
        evaluation, "play_episodes", lambda agent, envs, seeds, *_: (played.extend(seeds), ([0.0, 3.0], [5, 6]))[1]
    )
    train(tmp_path, steps=20, every=20, episodes=2, eval_steps=23)
    assert len(played) == len(set(played)) == 6, "three times two episodes of 11 steps, each with its own seed"
    assert rows(tmp_path)[-1]["eval/return"] == 1.5


def test_one_moment_is_one_row(tmp_path):
    train(tmp_path, steps=100, every=LIMIT)
    steps = [row["step"] for row in rows(tmp_path)]
    assert len(steps) == len(set(steps))


def test_threads_are_set_and_set_back(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(device, "limit_threads", asked.append)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    train(tmp_path / "a", threads=1)
    train(tmp_path / "b")
    assert asked == [1, None], "None is PyTorch's default"


@pytest.mark.parametrize("where", ["observe", "novelty", "update"])
def test_a_bonus_that_is_not_a_number_ends_the_run_with_the_step(tmp_path, monkeypatch, where):
    original = getattr(Remembering, where)

    def odd(self, *arguments):
        result = original(self, *arguments)
        return {"bonus/loss": float("nan")} if where == "update" else np.full(len(result), np.nan)

    monkeypatch.setattr(Remembering, where, odd)
    with pytest.raises(UsageError, match=r"is nan at step \d+"):
        train(tmp_path)
    assert json.loads((tmp_path / "summary.json").read_text())["state"] == "failed"


def test_losses_are_means_since_the_row_before(tmp_path):
    train(tmp_path, steps=10)
    losses = [row["agent/loss"] for row in rows(tmp_path)]
    steps = [row["step"] for row in rows(tmp_path)]
    assert steps[-1] == 10, "the last ones are not lost"
    starts = [0, *steps[:-1]]
    assert losses == [np.mean(range(a + 1, b + 1)) for a, b in zip(starts, steps, strict=True)]


def test_rewards_are_clipped_only_where_asked(tmp_path):
    rewards = np.concatenate([seen[2] for seen in train(tmp_path, steps=200, clip=1).agent.seen])
    assert rewards.max() == 1
    assert clip(np.array([-3.0, 0.5, 3.0]), None).tolist() == [-3.0, 0.5, 3.0]
    assert clip(np.array([-3.0, 0.5, 3.0]), 2).tolist() == [-2.0, 0.5, 2.0]


REWARDS = [(100.0, -0.4), (0.0, 0.3), (-7.0, 0.5), (0.25, 3.0)]
"""The environment's reward and the bonus, step by step, again and again."""


class Paid(gym.Wrapper):
    """Pays the rewards of `REWARDS`, and ends an episode after each round of them."""

    def reset(self, **keys):
        self.step_number = 0
        return self.env.reset(**keys)

    def step(self, action):
        observation, _, _, _, info = self.env.step(action)
        reward, _ = REWARDS[self.step_number]
        self.step_number += 1
        return observation, reward, False, self.step_number == len(REWARDS), info


class Paying(Remembering):
    """Pays the bonuses of `REWARDS`."""

    def observe(self, observations, visits=None):
        super().observe(observations, visits)
        return np.array([REWARDS[(len(self.visits) - 1) % len(REWARDS)][1]])


@pytest.mark.parametrize(
    ("extrinsic_clip", "clip", "learned"),
    [
        (None, None, [99.6, 0.3, -6.5, 3.25]),
        (1, None, [1 - 0.4, 0.3, -1 + 0.5, 0.25 + 3]),  # RND on Atari
        (1, 1, [1 - 0.4, 0.3, -1 + 0.5, 1]),  # CFN and PixelCNN on Atari: a score of 100 does not hide the bonus
        (None, 1, [1, 0.3, -1, 1]),
        (0.5, 2, [0.5 - 0.4, 0.3, -0.5 + 0.5, 2]),
    ],
)
def test_the_environments_reward_is_clipped_before_the_bonus_is_added_and_the_sum_after(
    tmp_path, extrinsic_clip, clip, learned
):
    keys = {"env": lambda render_mode=None: Paid(make_env()), "bonus_class": Paying}
    training = train(tmp_path, steps=8, clip=clip, extrinsic_clip=extrinsic_clip, **keys)
    assert [seen[2].item() for seen in training.agent.seen] == pytest.approx([*learned, *learned])
    assert [row["train/return"] for row in rows(tmp_path) if "train/return" in row] == [93.25, 93.25], "raw returns"


def test_the_raw_return_is_reported(tmp_path):
    train(tmp_path, steps=300, clip=0.5)
    returns = {row["train/return"] for row in rows(tmp_path) if "train/return" in row}
    assert returns == {0.0, 1.0}


class Stateless(gym.Wrapper):
    def reset(self, **keys):
        return self.env.reset(**keys)[0], {}

    def step(self, action):
        return *self.env.step(action)[:4], {}


def test_an_environment_without_states_trains_too(tmp_path):
    training = train(tmp_path, env=lambda render_mode=None: Stateless(make_env()), bonus_class=NoBonus)
    assert training.step == 60
    assert len(training.visit_counts) == 0
    assert not any("explore/states" in row for row in rows(tmp_path))
    assert list((tmp_path / "counts").iterdir()) == []


def test_agent_and_bonus_keep_their_frames_in_one_store(tmp_path):
    training = train(tmp_path, agent_class=RainbowAgent, bonus_class=CoinFlipBonus)
    agent, bonus = training.agent._replay.frames, training.bonus._replay.frames
    assert agent is bonus
    assert 0 < len(agent) <= SIZE**2


SOON = {"min_size": 10, "batch_size": 8, "channels": (4, 4, 4)}


def test_a_device_that_works_alongside_is_trained_on(tmp_path, monkeypatch):
    """Batches drawn ahead, and losses that stay there until they are logged: on the CPU, taken for such a device."""
    pretend_gpu(monkeypatch)
    parts = {"agent_class": partial(RainbowAgent, **SOON), "bonus_class": partial(CoinFlipBonus, **SOON)}
    training = train(tmp_path, steps=60, **parts)
    assert training.agent._batches.state_dict()
    assert training.bonus._batches.state_dict()
    last = rows(tmp_path)[-1]
    assert type(last["agent/loss"]) is type(last["bonus/loss"]) is float


def test_what_is_not_a_number_on_a_device_ends_the_run_when_it_is_logged(tmp_path, monkeypatch):
    pretend_gpu(monkeypatch)
    monkeypatch.setattr(Remembering, "update", lambda self: {"bonus/loss": torch.tensor(float("nan"))})
    with pytest.raises(UsageError, match=r"bonus/loss is nan at step \d+"):
        train(tmp_path)


def recorded_state(folder):
    return json.loads((folder / "summary.json").read_text())["state"]


def test_a_complete_run_is_finished_although_its_environments_cannot_be_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(Gridworld, "close", lambda env: 1 / 0)
    train(tmp_path)
    assert recorded_state(tmp_path) == "finished"


def test_a_tracker_that_fails_at_the_end_is_reported_and_the_summary_is_written(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(Tracker, "finish", lambda tracker, failed=False: 1 / 0)
    train(tmp_path)
    assert "Tracker failed (ZeroDivisionError: division by zero): the run continues without it" in caplog.text
    assert recorded_state(tmp_path) == "finished"


def test_of_two_errors_the_first_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(Tracker, "finish", lambda tracker, failed=False: 1 / 0)
    monkeypatch.setattr(Remembering, "update", lambda bonus: {"bonus/loss": float("nan")})
    with pytest.raises(UsageError, match="bonus/loss is nan"):
        train(tmp_path)
    assert recorded_state(tmp_path) == "failed"


def test_what_exists_before_the_loop_is_collected_again_after_it(tmp_path, monkeypatch):
    """A sweep runs many trainings in one process."""
    frozen, loop = [], Training.loop

    def watched(*arguments):
        frozen.append(gc.get_freeze_count())
        loop(*arguments)

    monkeypatch.setattr(Training, "loop", watched)
    train(tmp_path)
    assert frozen[0] > 1000
    assert gc.get_freeze_count() == 0
