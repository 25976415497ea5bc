import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from observing import Mission, Observing, grid

from cfn.envs.arrays import choose_entry, with_arrays
from cfn.errors import BadValueError, UsageError

IMAGE = Box(0, 255, (7, 7, 3), np.uint8)
POSITION = Box(-1, 1, (2,), np.float32)


def assert_vectors(env, size):
    observation, _ = env.reset(seed=0)
    assert env.observation_space.shape == observation.shape == (size,)
    assert env.observation_space.contains(observation)
    assert env.observation_space.dtype != np.uint8, "networks take bytes for images"


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (Discrete(5), 5),
        (MultiDiscrete([2, 3]), 5),
        (MultiBinary(3), 3),
        (Tuple((Discrete(3), POSITION)), 5),
        (Dict(a=Discrete(2), b=Dict(c=POSITION)), 4),
        (Box(-1, 1, (2, 3), np.float32), 6),
        (Box(0, 255, (128,), np.uint8), 128),
        (Box(-1, 1, (), np.float32), 1),
    ],
    ids=str,
)
def test_observations_become_vectors(space, size):
    assert_vectors(with_arrays(Observing(space)), size)


def test_flattening_is_gymnasiums():
    space = Dict(b=Tuple((Discrete(3), POSITION)), a=MultiDiscrete([2, 2]))
    env, plain = with_arrays(Observing(space)), gym.wrappers.FlattenObservation(Observing(space))
    assert env.observation_space == plain.observation_space
    for one, other in [(env.reset(seed=3)[0], plain.reset(seed=3)[0]), (env.step(0)[0], plain.step(0)[0])]:
        assert one.dtype == other.dtype
        assert (one == other).all()


@pytest.mark.parametrize("space", [IMAGE, Box(0, 255, (7, 7), np.uint8), POSITION], ids=str)
def test_images_and_vectors_stay_as_they_are(space):
    env = Observing(space)
    assert with_arrays(env) is env


def test_discrete_numbers_need_no_table():
    """A table of all one-hot vectors would take 40 GB."""
    env = with_arrays(Observing(Discrete(100_000, start=3)))
    observation, info = env.reset(seed=0)
    assert np.flatnonzero(observation).tolist() == [info["state"][0] - 3]


def test_entries_that_are_not_numbers_are_left_out_and_named():
    env = with_arrays(Observing(grid()), key="env.observation")
    assert_vectors(env, 4 + 7 * 7 * 3)
    assert env.observation_note == (
        "Observations are flattened to vectors of 151 numbers, without mission (is not numeric): "
        "env.observation chooses one entry instead (direction, image)."
    )


def test_tuples_are_left_out_of_too():
    env = with_arrays(Observing(Tuple((Text(3), POSITION, Tuple((Mission(), Discrete(2)))))))
    assert_vectors(env, 4)
    assert "without 0, 2.0 (are not numeric)." in env.observation_note


def test_the_only_image_stays_an_image():
    env = with_arrays(Observing(Dict(image=IMAGE, mission=Mission())), key="env.observation")
    observation, _ = env.reset(seed=0)
    assert env.observation_space == IMAGE
    assert (observation == env.unwrapped.last["image"]).all()
    assert "without mission" in env.observation_note


def test_numbers_need_no_note():
    assert with_arrays(Observing(Dict(a=POSITION, b=Discrete(2)))).observation_note == ""
    assert "env.observation" not in with_arrays(Observing(grid())).observation_note, "own environments have no such key"


@pytest.mark.parametrize("space", [Text(3), Mission(), Dict(a=Text(3))], ids=["text", "custom", "dict"])
def test_observations_without_numbers_are_refused(space):
    with pytest.raises(UsageError, match="cannot be converted to arrays"):
        with_arrays(Observing(space))


def test_one_entry_is_chosen():
    env = with_arrays(choose_entry(Observing(grid()), "image"))
    observation, _ = env.reset(seed=0)
    assert env.observation_space == IMAGE
    assert (observation == env.unwrapped.last["image"]).all()
    env = with_arrays(choose_entry(Observing(grid()), "direction"))
    observation, info = env.reset(seed=0)
    assert np.flatnonzero(observation).tolist() == list(info["state"]) == [env.unwrapped.last["direction"]]


@pytest.mark.parametrize(
    ("space", "name", "message"),
    [
        (grid(), "imag", "observation: imag is not an entry of the observation: choose from direction, image"),
        (grid(), "mission", "observation: mission is not numeric: choose from direction, image"),
        (POSITION, "x", "observation: names an entry, but observations of .* have no named entries"),
    ],
    ids=["unknown", "text", "no entries"],
)
def test_an_entry_that_cannot_be_chosen_is_refused(space, name, message):
    with pytest.raises(BadValueError, match=message):
        choose_entry(Observing(space), name)


def test_channels_of_images_come_last():
    space = gym.spaces.Box(0, 255, (3, 20, 24), np.uint8)
    env = with_arrays(Observing(space))
    observation, _ = env.reset(seed=0)
    assert env.observation_space.shape == observation.shape == (20, 24, 3)
    assert env.observation_space.contains(observation)
    assert (observation[..., 1] == env.unwrapped.last[1]).all()


def test_the_only_image_of_a_dict_may_have_its_channels_first():
    image = Box(0, 255, (3, 32, 30), np.uint8)
    env = with_arrays(Observing(Dict(image=image, mission=Mission())))
    observation, _ = env.reset(seed=0)
    assert env.observation_space.shape == observation.shape == (32, 30, 3)
    assert (observation == np.moveaxis(env.unwrapped.last["image"], 0, -1)).all()
