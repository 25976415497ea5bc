import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from observing import Observing, grid

from cfn.envs.arrays import with_arrays
from cfn.envs.true_states import binned, binned_entries
from cfn.errors import BadValueError

POSITION = Box(-1, 1, (2,), np.float32)
MAZE = Dict(position=POSITION, velocity=POSITION, room=Discrete(5))


def floors(values, width):
    return tuple(np.floor(np.asarray(values, float) / width).astype(int).tolist())


def after_a_step(env):
    """The observation as the environment itself gave it, and the true state."""
    env.reset(seed=0)
    *_, info = env.step(0)
    assert all(type(number) is int for number in info["state"])
    return env.unwrapped.last, info["state"]


@pytest.mark.parametrize(
    ("space", "state"),
    [
        (MultiDiscrete([4, 5]), lambda seen: seen),
        (MultiBinary(3), lambda seen: seen),
        (Tuple((Discrete(9), MultiDiscrete([4, 5]))), lambda seen: (seen[0], *seen[1])),
        (Dict(a=Discrete(9), b=Tuple((Discrete(3),))), lambda seen: (seen["a"], seen["b"][0])),
    ],
    ids=["multi-discrete", "multi-binary", "tuple", "dict"],
)
def test_discrete_observations_are_their_own_true_states(space, state):
    seen, counted = after_a_step(with_arrays(Observing(space)))
    assert counted == tuple(state(seen))


@pytest.mark.parametrize("space", [Tuple((Discrete(2), POSITION)), MAZE, grid()], ids=["tuple", "dict", "grid"])
def test_others_have_none(space):
    assert "state" not in with_arrays(Observing(space)).reset(seed=0)[1]


def test_one_width_is_for_every_number():
    seen, state = after_a_step(binned(Observing(POSITION), 0.1))
    assert state == floors(seen, 0.1)


def test_each_number_can_have_its_width_or_none():
    space = Box(-1, 1, (3,), np.float32)
    seen, state = after_a_step(binned(Observing(space), [0.1, None, 0.5]))
    assert state == floors(seen[:1], 0.1) + floors(seen[2:], 0.5)


def test_entries_have_widths_by_name():
    seen, state = after_a_step(binned_entries(Observing(MAZE), {"room": 1, "position": 0.5, "velocity": [None, 0.1]}))
    assert state == (seen["room"], *floors(seen["position"], 0.5), *floors(seen["velocity"][1:], 0.1))


def test_a_state_of_the_environment_itself_comes_first():
    env = Observing(POSITION)
    env.reset = lambda **_: (np.zeros(2, np.float32), {"state": (7,)})
    assert binned(env, 0.1).reset()[1]["state"] == (7,)


@pytest.mark.parametrize(
    ("space", "widths", "message"),
    [
        (POSITION, [0.1], r"bin: needs 2 widths, one per number of Box.*, and has 1"),
        (POSITION, [0.1] * 3, "and has 3"),
        (POSITION, [None, None], "bin: leaves out every number"),
        (POSITION, {"x": 0.1}, "bin: names an entry, but observations of Box"),
        (MAZE, {"posn": 0.1}, "bin: posn is not an entry of the observation: choose from position, velocity, room"),
        (MAZE, {"position": [0.1]}, r"bin\.position: needs 2 widths"),
        (MAZE, {}, "bin: names no entry"),
        (grid(), {"mission": 1}, "bin: mission is not numeric: choose from direction, image"),
    ],
    ids=["short", "long", "none", "no entries", "unknown", "short entry", "empty", "text"],
)
def test_widths_that_do_not_fit_are_refused(space, widths, message):
    with pytest.raises(BadValueError, match=message):
        (binned_entries if isinstance(widths, dict) else binned)(Observing(space), widths)
