import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from observing import Observing

from cfn.envs.arrays import with_arrays
from cfn.envs.batch import BrokenEnvError, EnvBatch
from cfn.envs.checks import as_array

IMAGE = Box(0, 255, (4, 4, 3), np.uint8)
PICTURE = np.full((4, 4, 3), 7, np.uint8)


class Answering(Observing):
    """Gives one observation, whatever its space says."""

    def __init__(self, space, answer):
        super().__init__(space)
        self.answer = answer

    def _observe(self):
        return self.answer


def batch(space, answer):
    return EnvBatch(lambda: with_arrays(Answering(space, answer)), 1, seed=0)


@pytest.mark.parametrize(
    ("space", "answer", "reason"),
    [
        (IMAGE, PICTURE / 255, "its observation holds float64, and its observation space uint8"),
        (IMAGE, (PICTURE / 255).tolist(), "its observation holds float64, and its observation space uint8"),
        (IMAGE, PICTURE + np.full(1, 250), "holds numbers from 257 to 257, and its observation space uint8"),
        (IMAGE, PICTURE - np.full(1, 8), "holds numbers from -1 to -1, and its observation space uint8"),
        (Dict(image=IMAGE), {"image": PICTURE / 255}, "holds float64, and its observation space uint8"),
        (Dict(image=IMAGE, more=Discrete(2)), {"image": PICTURE / 255, "more": 1}, "holds float64"),
        (Box(-9, 9, (2,), np.int32), np.full(2, 0.5), "holds float64, and its observation space int32"),
        (Box(-9, 9, (2,), np.float32), np.array(["a", "b"]), "its observation holds <U1"),
        (Discrete(5), 5, r"its observation is 5, and its observation space Discrete\(5\)"),
        (Discrete(5), -1, "its observation is -1"),
        (Discrete(5, start=3), 2, "its observation is 2"),
        (Discrete(5), 1.5, "its observation is 1.5"),
        (Discrete(5), np.array([1, 2]), r"its observation is \[1 2\]"),
        (Discrete(5), None, r"int\(\) argument must be .* not .NoneType."),
        (MultiDiscrete([2, 3]), np.array([1, 3]), r"its observation is \[1 3\]"),
        (MultiDiscrete([2, 3]), np.array([-1, 0]), r"its observation is \[-1 0\]"),
        (MultiDiscrete([2, 3]), np.array([1]), r"its observation is \[1\]"),
        (MultiBinary(3), np.array([0, 2, 0]), r"its observation is \[0 2 0\]"),
        (Tuple((Discrete(3), Box(0, 1, (2,)))), (3, np.zeros(2, np.float32)), "its observation is 3"),
    ],
)
def test_an_observation_outside_its_space_is_the_environments_fault(space, answer, reason):
    with pytest.raises(BrokenEnvError, match=reason):
        batch(space, answer).begin_episodes()


@pytest.mark.parametrize(
    ("space", "answer", "expected"),
    [
        (IMAGE, PICTURE.astype(np.int64), PICTURE),
        (IMAGE, PICTURE.tolist(), PICTURE),
        (IMAGE, PICTURE > 3, PICTURE // 7),
        (Box(-9, 9, (2,), np.float32), np.array([1, 2]), [1, 2]),
        (Box(-9, 9, (2,), np.float32), np.array([0.25, 2.0]), [0.25, 2]),
        (Box(-9, 9, (2,), np.int32), np.array([-9, 9], np.int64), [-9, 9]),
        (Discrete(3, start=-1), -1, [1, 0, 0]),
        (Discrete(3), np.int64(2), [0, 0, 1]),
        (Discrete(3), np.array([2]), [0, 0, 1]),
        (Discrete(3), np.array(2.0), [0, 0, 1]),
        (MultiDiscrete([2, 2], start=[1, 0]), np.array([2, 1]), [0, 1, 0, 1]),
        (MultiBinary(2), np.array([True, False]), [1, 0]),
    ],
)
def test_other_types_with_the_same_values_are_accepted(space, answer, expected):
    observations, _ = batch(space, answer).begin_episodes()
    assert observations[0].tolist() == np.asarray(expected).tolist()


def test_arrays_of_the_right_type_are_not_copied():
    observation = np.zeros(3, np.float32)
    assert as_array(Box(-1, 1, (3,), np.float32), observation) is observation
