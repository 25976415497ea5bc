import gymnasium as gym
import numpy as np
import pytest
from composing import composed
from metrics import rows
from resuming import IMAGES, SMALL_CFN, broken_off, claimed, resumed

from cfn.envs.generic import step_limit
from cfn.errors import BadValueError, UsageError
from cfn.naming import environment

pytest.importorskip("minigrid", reason="the package minigrid (pip install 'cfn-rl[minigrid]') is not installed")

from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX
from minigrid.wrappers import FullyObsWrapper

from cfn.envs import minigrid
from cfn.envs.minigrid import MiniGrid

LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE = range(6)
RIGHTWARDS, DOWNWARDS = 0, 1
LARGEST = {"object": max(OBJECT_TO_IDX.values()), "colour": max(COLOR_TO_IDX.values()), "direction": 3}
MULTIROOM = "MiniGrid-MultiRoom-N2-S4-v0"


def cells(env, image):
    """The package's numbers of an observation, by column and row."""
    pixels = env._pixels
    small = image[::pixels, ::pixels]
    assert (np.kron(small, np.ones((pixels, pixels, 1), np.uint8)) == image).all(), "every cell is a square"
    numbers, rest = np.divmod(small, minigrid.FACTORS)
    assert not rest.any()
    return np.swapaxes(numbers, 0, 1)


@pytest.mark.parametrize("id", ["MiniGrid-DoorKey-8x8-v0", "MiniGrid-KeyCorridorS3R2-v0", "MiniGrid-LavaGapS5-v0"])
@pytest.mark.parametrize("view", ["partial", "full"])
def test_observations_are_the_packages_own_as_images(id, view):
    ours, plain = MiniGrid(id, view=view, pixels=2), gym.make(id, disable_env_checker=True)
    theirs = FullyObsWrapper(plain) if view == "full" else plain
    for seed in range(3):
        rng = np.random.default_rng(seed)
        image, _ = ours.reset(seed=seed)
        observation, _ = theirs.reset(seed=seed)
        for _ in range(60):
            assert ours.observation_space.contains(image)
            assert (cells(ours, image) == observation["image"]).all()
            action = int(rng.integers(7))
            image, reward, terminated, truncated, _ = ours.step(action)
            observation, *others, _ = theirs.step(action)
            assert [reward, terminated, truncated] == others
            if terminated or truncated:
                break


def test_the_numbers_are_spread_over_the_bytes():
    assert STATE_TO_IDX.keys() == {"open", "closed", "locked"}, "the direction of the agent is the largest number"
    largest = minigrid.FACTORS.astype(int) * list(LARGEST.values())
    assert largest.max() <= 255
    assert (largest + minigrid.FACTORS > 255).all(), "no larger factor would fit"
    assert len(COLOR_TO_IDX) == minigrid.COLOURS
    assert len(STATE_TO_IDX) == minigrid.DOOR_STATES


@pytest.mark.parametrize(
    ("keys", "shape"),
    [
        ({}, (28, 28, 3)),
        ({"view": "full"}, (32, 32, 3)),
        ({"view": "full", "pixels": 1}, (8, 8, 3)),
        ({"kwargs": {"agent_view_size": 5}}, (20, 20, 3)),
        ({"id": "MiniGrid-DoorKey-5x5", "view": "full"}, (20, 20, 3)),
    ],
)
def test_a_view_has_its_shape(keys, shape):
    env = MiniGrid(**keys)
    image, _ = env.reset(seed=0)
    assert image.shape == env.observation_space.shape == shape
    assert image.dtype == np.uint8


def door_key(**keys):
    """The default task in a layout in which the way is known: the agent stands left of the key, before the door."""
    from minigrid.core.grid import Grid
    from minigrid.core.world_object import Door, Goal, Key

    env = MiniGrid("MiniGrid-DoorKey-5x5-v0", **keys)
    grid = env.unwrapped

    def generate(width, height):
        grid.grid = Grid(width, height)
        grid.grid.wall_rect(0, 0, width, height)
        grid.grid.vert_wall(3, 0)
        grid.put_obj(Key("yellow"), 2, 1)
        grid.put_obj(Door("yellow", is_locked=True), 3, 2)
        grid.put_obj(Goal(), 4, 2)
        grid.agent_pos, grid.agent_dir = (1, 1), RIGHTWARDS
        grid.mission = ""

    grid._gen_grid = generate
    return env


YELLOW_KEY = OBJECT_TO_IDX["key"] * len(COLOR_TO_IDX) + COLOR_TO_IDX["yellow"]
OPEN, CLOSED, LOCKED = range(3)


def test_the_true_state_is_that_of_agent_and_doors():
    env = door_key(view="full")
    states = [env.reset(seed=0)[1]["state"]]
    actions = [PICK_UP, FORWARD, RIGHT, FORWARD, LEFT, TOGGLE, TOGGLE, TOGGLE, LEFT, DROP, RIGHT, FORWARD, FORWARD]
    for action in actions:
        _, reward, terminated, truncated, info = env.step(action)
        states.append(info["state"])
    assert states == [
        (1, 1, RIGHTWARDS, 0, LOCKED),
        (1, 1, RIGHTWARDS, YELLOW_KEY, LOCKED),  # picks up the key
        (2, 1, RIGHTWARDS, YELLOW_KEY, LOCKED),
        (2, 1, DOWNWARDS, YELLOW_KEY, LOCKED),
        (2, 2, DOWNWARDS, YELLOW_KEY, LOCKED),
        (2, 2, RIGHTWARDS, YELLOW_KEY, LOCKED),
        (2, 2, RIGHTWARDS, YELLOW_KEY, OPEN),
        (2, 2, RIGHTWARDS, YELLOW_KEY, CLOSED),
        (2, 2, RIGHTWARDS, YELLOW_KEY, OPEN),
        (2, 2, 3, YELLOW_KEY, OPEN),
        (2, 2, 3, 0, OPEN),  # drops the key
        (2, 2, RIGHTWARDS, 0, OPEN),
        (3, 2, RIGHTWARDS, 0, OPEN),  # stands in the door
        (4, 2, RIGHTWARDS, 0, OPEN),
    ]
    assert (terminated, truncated) == (True, False)
    assert reward == pytest.approx(1 - 0.9 * len(actions) / 250)
    assert all(type(number) is int for state in states for number in state)
    assert len(env.state_names) == len(states[0])


def test_states_of_many_doors_differ():
    env = MiniGrid("MiniGrid-MultiRoom-N6-v0")
    env.reset(seed=0)
    assert len(env._doors) == 5
    numbers = set()
    for states in np.ndindex(*[3] * 5):
        for door, state in zip(env._doors, states, strict=True):
            door.is_open, door.is_locked = state == OPEN, state == LOCKED
        numbers.add(env._state()[-1])
    assert len(numbers) == 3**5


@pytest.mark.parametrize("id", ["MiniGrid-DoorKey-5x5-v0", MULTIROOM])
def test_in_one_layout_the_image_of_a_state_is_its_own(id):
    """As long as no object is dropped elsewhere, which the true state does not tell."""
    env = MiniGrid(id, view="full", layout="run", run_seed=4)
    images = {}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        image, info = env.reset(seed=seed)
        for _ in range(100):
            images.setdefault(info["state"], set()).add(image.tobytes())
            image, _, terminated, truncated, info = env.step(int(rng.choice([LEFT, RIGHT, FORWARD, PICK_UP, TOGGLE])))
            if terminated or truncated:
                break
    assert len(images) > 15
    assert all(len(found) == 1 for found in images.values())
    assert len(set.union(*images.values())) == len(images)


def test_the_partial_view_shows_what_is_carried():
    env = door_key()
    before, _ = env.reset(seed=0)
    after, *_ = env.step(PICK_UP)
    mine = (3, 6)  # the middle of the lowest row
    assert cells(env, before)[mine].tolist() == [OBJECT_TO_IDX["empty"], 0, 0]
    assert cells(env, after)[mine].tolist() == [OBJECT_TO_IDX["key"], COLOR_TO_IDX["yellow"], 0]


def layouts(env, seeds):
    return {env.reset(seed=seed)[0].tobytes() for seed in seeds}


def test_the_layout_is_drawn_per_episode_or_per_run():
    assert len(layouts(MiniGrid(view="full"), range(10))) == 10
    run = MiniGrid(view="full", layout="run", run_seed=1)
    assert len(layouts(run, range(10))) == 1
    same = MiniGrid(view="full", layout="run", run_seed=1)
    other = MiniGrid(view="full", layout="run", run_seed=2)
    assert layouts(run, [0]) == layouts(same, [5]) != layouts(other, [0])


def test_what_moves_by_itself_differs_between_the_episodes_of_a_run():
    env = MiniGrid("MiniGrid-Dynamic-Obstacles-8x8-v0", view="full", layout="run", run_seed=0)

    def episode(seed):
        env.reset(seed=seed)
        return [env.step(LEFT)[0].tobytes() for _ in range(5)]

    assert episode(1) == episode(1)
    assert episode(1) != episode(2)
    assert len(layouts(env, [1, 2])) == 1, "although it begins alike"


def test_training_and_evaluation_share_the_layout_of_a_run(tmp_path):
    _, training = claimed(tmp_path, "env=minigrid", "env.layout=run", "env.view=full", "bonus=none", "num_envs=2")
    envs = (*training.envs.copies.envs.values(), *training.evaluate._envs)
    assert len(set.union(*(layouts(env, [seed]) for seed, env in enumerate(envs)))) == 1


def test_episodes_end_at_the_limit():
    assert step_limit(MiniGrid()) == 640, "10 * 8 * 8, the package's"
    env = MiniGrid(max_steps=7)
    assert step_limit(env) == 7
    env.reset(seed=0)
    assert [env.step(LEFT)[2:4] for _ in range(7)] == [(False, False)] * 6 + [(False, True)]


def test_reaching_the_goal_in_the_last_step_is_no_truncation():
    env = door_key(max_steps=13)
    env.reset(seed=0)
    for action in (PICK_UP, FORWARD, RIGHT, FORWARD, LEFT, TOGGLE, LEFT, RIGHT, LEFT, RIGHT, LEFT, RIGHT):
        assert env.step(action)[2:4] == (False, False)
    env.unwrapped.agent_pos = (3, 2)
    _, reward, terminated, truncated, _ = env.step(FORWARD)
    assert (terminated, truncated) == (True, False)
    assert reward == pytest.approx(0.1)


def test_observations_are_the_callers_to_keep():
    env = MiniGrid(pixels=1)
    image, _ = env.reset(seed=0)
    kept = image.copy()
    env.step(RIGHT)
    assert (image == kept).all()


@pytest.mark.parametrize(
    ("id", "told"),
    [("MiniGrid-DoorKey-5x5-v0", False), ("MiniGrid-GoToDoor-5x5-v0", True), ("BabyAI-GoToRedBall-v0", True)],
)
def test_a_mission_that_matters_is_missed_aloud(id, told):
    assert bool(MiniGrid(id).observation_note) == told
    if told:
        assert "do not contain the mission" in MiniGrid(id).observation_note


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"id": "CartPole-v1"},
            "^id: CartPole-v1 is not a task of the package minigrid: use env=gym env.id=CartPole-v1",
        ),
        ({"id": "MiniGrid-DoorKy-8x8-v0"}, "^id: Gymnasium has no environment .*did you mean MiniGrid-DoorKey-8x8-v0"),
        ({"kwargs": {"nosuch": 1}}, "^kwargs: MiniGrid-DoorKey-8x8-v0 cannot be created: TypeError"),
    ],
)
def test_what_cannot_be_created_is_a_sentence(keys, message):
    with pytest.raises(BadValueError, match=message):
        MiniGrid(**keys)


def test_wrong_keys_are_refused():
    with pytest.raises(UsageError, match=r"^env\.view=all: should be 'partial' or 'full'"):
        composed("env=minigrid", "env.view=all")
    with pytest.raises(UsageError, match=r"^env\.pixels=0: should be greater than or equal to 1"):
        composed("env=minigrid", "env.pixels=0")


def test_a_run_is_named_after_its_task():
    config, _ = composed("env=minigrid")
    assert environment("minigrid", config.env.keys) == "minigrid-MiniGrid-DoorKey-8x8-v0"


def test_a_picture_needs_no_display():
    env = MiniGrid(render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.shape == (256, 256, 3)
    assert picture.std() > 10


@pytest.mark.thorough
@pytest.mark.parametrize("keys", [(), ("env.view=full", "env.layout=run")], ids=["partial", "full"])
def test_a_run_resumes_bit_for_bit(tmp_path, monkeypatch, keys):
    overrides = (
        "env=minigrid", "env.id=MiniGrid-DoorKey-5x5-v0", "env.max_steps=30", *keys, *IMAGES, *SMALL_CFN, "num_envs=2",
        "steps=140", "eval.every=50", "checkpoint.every=50",
    )  # fmt: skip
    whole, training = claimed(tmp_path / "whole", *overrides)
    training.run(whole)
    broken = broken_off(tmp_path / "broken", 112, monkeypatch, *overrides)
    assert resumed(broken, monkeypatch) == rows(whole.folder)
    assert any("bonus/mse" in row for row in rows(whole.folder)), "visits are counted"


@pytest.mark.parametrize("bonus", ["rnd", "cts", "simhash", "elliptical", "drnd", "e3b"])
def test_bonuses_take_its_images(tmp_path, bonus):
    _, training = claimed(tmp_path, "env=minigrid", "agent=random", f"bonus={bonus}", "env.pixels=1", "steps=50")
    observations, states = training.envs.begin_episodes()
    assert np.isfinite(training.bonus.novelty(observations, states)).all()


def test_the_step_limit_holds_in_levels_that_compute_their_own():
    env = MiniGrid("BabyAI-GoToRedBall-v0", max_steps=7)
    for seed in (0, None):
        env.reset(seed=seed)
        ends = [env.step(LEFT)[3] for _ in range(7)]
        assert ends == [False] * 6 + [True]
