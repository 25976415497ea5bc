import gymnasium as gym
import numpy as np
import pytest
from composing import composed
from gymnasium.utils.env_checker import check_env
from metrics import rows
from resuming import IMAGES, SMALL_CFN, broken_off, claimed, resumed

from cfn import seeding
from cfn.envs.batch import EnvBatch
from cfn.envs.deep_sea import BAD_EPISODES, DeepSea
from cfn.envs.generic import step_limit
from cfn.errors import BadValueError, UsageError


def dive(env, moves, seed=None):
    """The outcome of every move of an episode; True is a move to the right."""
    env.reset(seed=seed)
    outcomes = []
    for right in moves:
        row, column = env._row, env._column
        action = env.actions_right[row, column] if right else 1 - env.actions_right[row, column]
        outcomes.append(env.step(int(action)))
    return outcomes


def bad(outcomes):
    return outcomes[-1][-1]["episode_metrics"][BAD_EPISODES]


@pytest.mark.parametrize("observation", ["image", "one_hot"])
def test_gymnasiums_checker_passes(observation):
    check_env(DeepSea(observation=observation), skip_render_check=True)


@pytest.mark.parametrize("size", [2, 10, 50])
def test_right_all_the_way_is_the_only_way_to_the_reward_and_has_a_price(size):
    env = DeepSea(size, run_seed=3)
    outcomes = dive(env, [True] * size)
    assert [outcome[-1]["state"] for outcome in outcomes] == [(i, i) for i in range(1, size)] + [(size, 0)]
    assert [outcome[2:4] for outcome in outcomes] == [(False, False)] * (size - 1) + [(True, False)]
    assert sum(outcome[1] for outcome in outcomes) == pytest.approx(0.99), "as bsuite says"
    assert outcomes[0][1] == pytest.approx(-0.01 / size), "not scaled with anything else"
    assert bad(outcomes) == 0
    for wrong in range(size):
        outcomes = dive(env, [step != wrong for step in range(size)])
        assert sum(outcome[1] for outcome in outcomes) == pytest.approx(-0.01 * (size - 1) / size)
        assert bad(outcomes) == 1
    assert sum(outcome[1] for outcome in dive(env, [False] * size)) == 0


def test_only_a_left_on_the_diagonal_makes_an_episode_bad():
    env = DeepSea(4, stochastic=True, run_seed=0)
    for seed in range(200):
        env.reset(seed=seed)
        expected = 0.0
        for _ in range(4):
            row, column = env._row, env._column
            right = bool(env.np_random.integers(2))
            expected = max(expected, float(not right and row == column))
            *_, info = env.step(
                int(env.actions_right[row, column]) if right else 1 - int(env.actions_right[row, column])
            )
        assert info["episode_metrics"] == {BAD_EPISODES: expected}


def test_the_borders_hold():
    env = DeepSea(3, run_seed=0)
    assert [outcome[-1]["state"] for outcome in dive(env, [False, False, False])] == [(1, 0), (2, 0), (3, 0)]
    env._row, env._column = 1, 2  # not reached by any move
    assert env.step(int(env.actions_right[1, 2]))[-1]["state"] == (2, 2)


def test_the_actions_are_drawn_once_per_run_and_fairly():
    env = DeepSea(50, run_seed=7)
    assert set(np.unique(env.actions_right)) == {0, 1}
    assert env.actions_right.mean() == pytest.approx(0.5, abs=4 * 0.5 / 50), "within four standard deviations"
    assert (env.actions_right == DeepSea(50, run_seed=7).actions_right).all()
    assert (env.actions_right != DeepSea(50, run_seed=8).actions_right).any()
    before = env.actions_right.copy()
    env.reset(seed=0)
    assert (env.actions_right == before).all()


def test_training_and_evaluation_share_the_actions_of_a_run(tmp_path):
    _, training = claimed(tmp_path, "env=deep_sea", "bonus=none", "num_envs=2")
    expected = DeepSea(run_seed=seeding.integer(0, "env")).actions_right
    for env in (*training.envs.copies.envs.values(), *training.evaluate._envs):
        assert (env.unwrapped.actions_right == expected).all()


def test_wind_and_noise_are_those_of_bsuite():
    size, episodes = 10, 4000
    env = DeepSea(size, stochastic=True, run_seed=1)
    left, moved, corner, elsewhere = [], [], [], []
    env.reset(seed=0)
    for _ in range(episodes):
        env.reset()
        env._row = env._column = size - 1
        corner.append(env.step(int(env.actions_right[-1, -1]))[1])
        env.reset()
        env._row, env._column = size - 1, 0
        left.append(env.step(1 - int(env.actions_right[-1, 0]))[1])
        env.reset()
        _, reward, _, _, info = env.step(int(env.actions_right[0, 0]))
        moved.append(info["state"] == (1, 1))
        elsewhere.append(reward)
        if not moved[-1]:
            assert info["state"] == (1, 0), "the agent stays in its column"
    error = 4 / np.sqrt(episodes)  # four standard deviations
    assert np.mean(moved) == pytest.approx(1 - 1 / size, abs=error * 0.3)
    assert set(elsewhere) == {-0.01 / size}, "a move that fails has its price, too"
    assert np.mean(corner) == pytest.approx(1 - 0.01 / size, abs=error)
    assert np.mean(left) == pytest.approx(0, abs=error)
    for rewards in (corner, left):
        assert np.std(rewards) == pytest.approx(1, abs=error)


def test_the_deterministic_version_has_neither():
    env = DeepSea(5, run_seed=2)
    returns = {round(sum(outcome[1] for outcome in dive(env, [True] * 5, seed)), 12) for seed in range(50)}
    assert returns == {0.99}


def test_an_image_has_one_white_cell_and_none_at_the_end():
    env = DeepSea(4, image_size=12, run_seed=0)
    assert env.observation_space.shape == (12, 12)
    images = [env.reset()[0], *(outcome[0] for outcome in dive(env, [True, True, False, True]))]
    for image, (row, column) in zip(images, [(0, 0), (1, 1), (2, 2), (3, 1)], strict=False):
        cells = np.zeros((4, 4), np.uint8)
        cells[row, column] = 255
        assert (image == np.kron(cells, np.ones((3, 3), np.uint8))).all()
    assert not images[-1].any()
    assert DeepSea(4).observation_space.shape == (4, 4), "one pixel per cell"


def test_a_vector_is_the_image_in_one_row():
    env = DeepSea(4, observation="one_hot", run_seed=0)
    outcomes = dive(env, [True, False, True, True])
    vectors = [env.reset()[0], *(outcome[0] for outcome in outcomes)]
    assert vectors[0].dtype == np.float32
    assert [np.flatnonzero(vector).tolist() for vector in vectors] == [[0], [5], [8], [13], []]
    assert all(set(np.unique(vector)) <= {0, 1} for vector in vectors)


def test_each_true_state_has_an_image_of_its_own():
    env = DeepSea(5, run_seed=0)
    images = {}
    for moves in np.ndindex(*[2] * 5):
        for image, *_, info in dive(env, moves):
            images.setdefault(info["state"], set()).add(image.tobytes())
    assert len(images) == 1 + sum(range(2, 6)), "all cells on and below the diagonal but the first, and the end"
    assert all(len(found) == 1 for found in images.values())
    assert len(set.union(*images.values())) == len(images)


@pytest.mark.parametrize(
    ("keys", "episodes", "fraction", "solved"),
    [
        ({}, 1123, 0.899, True),
        ({}, 1123, 0.9, False),
        ({}, 1124, 0.5, False),  # 2^10 + 100
        ({}, 1, 0.0, True),
        ({"size": 20}, 10_000, 0.89, True),
        ({"size": 20}, 10_001, 0.89, False),
        ({"stochastic": True}, 100, 0.79, True),
        ({"stochastic": True}, 100, 0.81, False),
        ({"stochastic": True}, 99, 0.0, False),
        ({"solved_below": 0.8}, 500, 0.85, False),
        ({"stochastic": True, "solved_below": 0.9}, 500, 0.85, True),
    ],
)
def test_the_criterion_is_bsuites(keys, episodes, fraction, solved):
    assert DeepSea(**keys).is_solved(episodes, {BAD_EPISODES: fraction}) is solved


class Expert(DeepSea):
    """Its action 1 is always a move to the right."""

    def __init__(self):
        super().__init__(6)
        self.actions_right[:] = 1


def test_a_run_counts_bad_episodes_and_says_when_it_has_solved_the_task():
    """Ten bad episodes, then good ones: 10 / 12 is the first fraction below 0.9."""
    envs = EnvBatch(Expert, 1, seed=0)
    metrics = []
    for episode in range(14):
        for _ in range(6):
            envs.begin_episodes()
            envs.step(np.array([int(episode >= 10)]))
        metrics.append(envs.episode_metrics)
    fractions = [row[BAD_EPISODES] for row in metrics]
    assert fractions == pytest.approx([1.0] * 10 + [10 / 11, 10 / 12, 10 / 13, 10 / 14])
    assert [row.get("explore/solved_episode") for row in metrics] == [None] * 10 + [None, 12, 12, 12]


@pytest.mark.thorough
def test_the_counters_of_a_run_resume_bit_for_bit(tmp_path, monkeypatch):
    """Random actions: the task is solved by luck, before the run is broken off."""
    overrides = (
        "env=deep_sea", "env.size=3", "env.image_size=12", *IMAGES, *SMALL_CFN, "num_envs=2", "steps=140",
        "eval.every=50", "checkpoint.every=50",
    )  # fmt: skip
    whole, training = claimed(tmp_path / "whole", *overrides)
    training.run(whole)
    broken = broken_off(tmp_path / "broken", 110, monkeypatch, *overrides)
    assert resumed(broken, monkeypatch) == rows(whole.folder)
    reported = [row for row in rows(whole.folder) if BAD_EPISODES in row]
    assert [row["train/episodes"] for row in reported] == list(range(2, 48, 2))
    assert all("train/return" in row for row in reported)
    assert len({row[BAD_EPISODES] for row in reported}) > 10
    (solved,) = {row["explore/solved_episode"] for row in reported if "explore/solved_episode" in row}
    assert solved < 30, "before the checkpoint"


def test_an_evaluation_needs_no_limit():
    env = DeepSea(17)
    assert step_limit(env) == 17


def test_the_length_of_a_run_follows_from_the_size():
    config, _ = composed("env=deep_sea", "env.size=30")
    assert (config.steps, config.eval.every) == (300_000, 3_000)
    assert (config.agent.keys["vmin"], config.agent.keys["vmax"]) == (-1.2, 1.2)
    config, _ = composed("env=deep_sea", "env.stochastic=true")
    assert (config.steps, config.agent.keys["vmin"], config.agent.keys["vmax"]) == (100_000, -4.8, 4.8)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("env.size=1",), r"^env\.size=1: should be greater than or equal to 2"),
        (("env.run_seed=1",), r"^env\.run_seed is not a key"),
        (("env.observation=vector",), r"^env\.observation=vector: should be 'image' or 'one_hot'"),
        (("env.solved_below=2",), r"^env\.solved_below=2: should be less than or equal to 1"),
    ],
)
def test_a_wrong_key_is_refused(overrides, message):
    with pytest.raises(UsageError, match=message):
        composed("env=deep_sea", *overrides)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"image_size": 84}, "an image of 84 pixels cannot be divided into 10 equal cells: choose .* such as 90"),
        ({"image_size": 20, "observation": "one_hot"}, "vectors have no pixels"),
    ],
)
def test_an_impossible_image_is_refused(keys, message):
    with pytest.raises(BadValueError, match=rf"^image_size: {message}"):
        DeepSea(10, **keys)


def test_an_action_that_is_none_is_refused():
    env = DeepSea()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="not 2"):
        env.step(2)


def test_rendering_shows_agent_and_treasure():
    env = gym.make("cfn/DeepSea-v0", size=7, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (420, 420, 3)
    assert picture[0, 0].tolist() == [255, 255, 255]
    assert picture[-1, -1].tolist() == [90, 200, 120]
    assert (picture.reshape(-1, 3) == 255).all(axis=1).sum() == 60 * 60
    for _ in range(7):
        env.step(0)
    assert not (env.render() == 255).all(axis=2).any(), "at the end, the agent is gone"
