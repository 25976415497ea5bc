import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from observing import Observing, grid

from cfn.envs import atari
from cfn.envs.fetch import Fetch
from cfn.envs.generic import action_kind, make, step_limit
from cfn.envs.gridworld import Gridworld
from cfn.envs.stack import StackFrames
from cfn.errors import BadValueError, UsageError

VECTOR = Box(-1, 1, (2,), np.float32)


@pytest.fixture
def registered():
    """Register a small environment with an observation space; `registered(space)` returns its id."""
    ids = []

    def register(space, **keys):
        ids.append(f"Observing{len(ids)}-v0")
        gym.register(ids[-1], entry_point=lambda **more: Observing(space, **keys, **more), disable_env_checker=True)
        return ids[-1]

    yield register
    for id in ids:
        del gym.registry[id]


def test_an_id_gives_the_environment_as_it_is():
    env = make("CartPole-v1")
    plain = gym.make("CartPole-v1")
    assert (env.reset(seed=3)[0] == plain.reset(seed=3)[0]).all()
    assert "state" not in env.reset(seed=3)[1]
    assert env.spec.max_episode_steps == 500


def test_bins_give_the_true_state():
    env = make("CartPole-v1", bin=0.01)
    observation, info = env.reset(seed=3)
    assert info["state"] == tuple(np.floor(observation.astype(float) / 0.01).astype(int).tolist())
    observation, *_, info = env.step(0)
    assert info["state"] == tuple(np.floor(observation.astype(float) / 0.01).astype(int).tolist())


def test_numbered_observations_become_one_hot_and_are_the_state():
    env = make("FrozenLake-v1", kwargs={"is_slippery": False})
    observation, info = env.reset(seed=0)
    assert observation.tolist() == [1.0] + [0.0] * 15
    assert info["state"] == (0,)
    observation, *_, info = env.step(2)
    assert np.flatnonzero(observation).tolist() == [1]
    assert info["state"] == (1,)
    assert env.observation_space.contains(observation)


def test_tuples_of_numbers_are_flattened_and_are_the_state():
    env = make("Blackjack-v1", max_steps=20)
    observation, info = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert len(info["state"]) == 3
    assert [int(n) for n in gym.make("Blackjack-v1").reset(seed=0)[0]] == list(info["state"])


def test_bins_of_discrete_observations_are_those_of_the_vector():
    """As before tuples were counted without bins: old runs can be resumed."""
    env = make("Blackjack-v1", bin=1.0)
    observation, info = env.reset(seed=0)
    assert info["state"] == tuple(observation.tolist())


def test_an_image_is_observed_while_another_entry_is_counted(registered):
    env = make(registered(grid()), observation="image", bin={"direction": 1})
    observation, info = env.reset(seed=0)
    assert observation.shape == (7, 7, 3)
    assert info["state"] == (env.unwrapped.last["direction"],)


def test_a_chosen_entry_is_cut_into_bins(registered):
    env = make(registered(Dict(position=VECTOR, other=VECTOR)), observation="position", bin=[0.1, None])
    observation, info = env.reset(seed=0)
    assert (observation == env.unwrapped.last["position"]).all()
    assert info["state"] == (int(np.floor(float(observation[0]) / 0.1)),)


SHORT = (
    "steps=40",
    "eval.every=20",
    "eval.episodes=2",
    "tracker=none",
    "pictures=false",
    "threads=1",
    "checkpoint.every=null",
)
SMALL = ("agent.min_size=10", "agent.hidden=[8]", "agent.channels=[2,2,2]", "agent.batch_size=4")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "bonus",
    [
        ("bonus=cfn", "bonus.min_size=10", "bonus.batch_size=8", "bonus.channels=[2,2,2]"),
        ("bonus=rnd",),
        ("bonus=count",),
    ],
    ids=["cfn", "rnd", "count"],
)
def test_colour_images_are_learned_from(bonus, registered, call):
    id = registered(grid())
    done = call(
        "train", "env=gym", f"env.id={id}", "env.observation=image", "env.bin.direction=1", *bonus, *SMALL, *SHORT
    )
    assert done.returncode == 0, done.stderr
    assert "states 4" in done.stdout + done.stderr


def test_a_bonus_for_grey_images_refuses_colours(registered, call):
    done = call("train", "env=gym", f"env.id={registered(grid())}", "env.observation=image", "bonus=pixelcnn", *SHORT)
    assert "bonus=pixelcnn models grey images" in done.stderr


def test_what_is_left_out_is_said_once(registered, call):
    done = call("train", "env=gym", f"env.id={registered(grid())}", *SHORT, "agent=random")
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("without mission (is not numeric)") == 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bin", "message"),
    [
        ("env.bin=[0.1,0.1]", "env.bin: needs 4 widths"),
        ("env.bin={x:0.1}", "env.bin: names an entry"),
        ("env.bin=[0.1,0.1,0.1,-1]", "env.bin=[0.1, 0.1, 0.1, -1]: should be"),
        ("env.bin=wide", "env.bin=wide: should be a valid number"),
        ("env.observation=x", "env.observation: names an entry"),
    ],
)
def test_errors_name_the_key(bin, message, call):
    done = call("train", "env=gym", "env.id=CartPole-v1", bin, *SHORT)
    assert done.returncode == 1
    assert message in done.stderr


def test_a_step_limit_can_be_set():
    env = make("CartPole-v1", max_steps=3)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "NoSuch-v0"}, "id: Gymnasium has no environment 'NoSuch-v0'"),
        ({"id": "CartPole-v1", "kwargs": {"wheels": 4}}, "wheels"),
        ({"id": "FrozenLake-v1", "kwargs": {"map_name": "99x99"}}, "kwargs: FrozenLake-v1 cannot be created: KeyError"),
        ({"id": "CartPole-v1", "observation": "x"}, "observation: names an entry"),
        ({"id": "CartPole-v1", "bin": [0.1]}, "bin: needs 4 widths"),
    ],
)
def test_an_environment_that_cannot_be_made_is_refused(arguments, message):
    with pytest.raises(BadValueError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("env", "limit"),
    [
        (lambda: make("CartPole-v1"), 500),
        (lambda: make("CartPole-v1", max_steps=7, bin=1.0), 7),
        (lambda: make("Blackjack-v1"), None),
        (lambda: make("ALE/Breakout-v5"), 27_000),
        (lambda: make("ALE/Breakout-v5", kwargs={"frameskip": 3}), 36_000),
        (lambda: atari.make(max_steps=123), 123),
        (lambda: StackFrames(Gridworld(max_steps=90, action_noise=0.1), 2), 100),
        (lambda: Fetch("reach", max_steps=9), 9),
        (lambda: gym.wrappers.TimeLimit(Observing(VECTOR), 4), 4),
        (lambda: gym.wrappers.TimeLimit(Gridworld(max_steps=3), 4), 3),
        (lambda: Observing(VECTOR), None),
    ],
)
def test_the_step_limit_is_found(env, limit):
    assert step_limit(env()) == limit


@pytest.mark.parametrize(
    ("space", "kind"),
    [(Discrete(3), "discrete"), (Discrete(3, start=1), "discrete"), (VECTOR, "continuous")],
    ids=str,
)
def test_actions_are_discrete_or_continuous(space, kind):
    assert action_kind(space, VECTOR) == kind


@pytest.mark.parametrize(
    "space",
    [
        MultiDiscrete([3, 3]),
        MultiBinary(2),
        Tuple((Discrete(2), VECTOR)),
        Dict(a=Discrete(2)),
        Box(-1, 1, (2, 2), np.float32),
        Box(0, 5, (2,), np.int64),
    ],
    ids=str,
)
def test_other_actions_are_refused_by_name(space):
    with pytest.raises(UsageError) as error:
        action_kind(space, VECTOR)
    assert str(error.value).startswith(f"actions of {space} are not supported by rainbow and sac: ")
    can_be_learned = isinstance(space, MultiDiscrete | MultiBinary)
    assert (
        str(error.value).endswith(", or use agent=sb3 agent.algorithm=PPO (pip install 'cfn-rl[sb3]')")
        == can_be_learned
    )


def test_images_with_continuous_actions_are_refused_with_an_agent_that_takes_them():
    with pytest.raises(UsageError, match=r"^images with actions of Box.* by rainbow and sac: use agent=sb3 agent\.alg"):
        action_kind(VECTOR, Box(0, 255, (8, 8, 3), np.uint8))


class NeedsOptions(Observing):
    """Cannot be reset without options."""

    def __init__(self, level, render_mode=None):
        super().__init__(VECTOR)
        self.level = level

    def reset(self, *, seed=None, options=None):
        self.place = options["place"]
        return super().reset(seed=seed)


@pytest.fixture
def needing_options():
    gym.register("NeedsOptions-v0", NeedsOptions)
    yield "NeedsOptions-v0"
    del gym.registry["NeedsOptions-v0"]


def test_options_reach_every_reset(needing_options):
    env = make(needing_options, kwargs={"level": 1}, reset_options={"place": [1, 2]})
    for _ in range(2):
        env.reset(seed=0)
        assert env.unwrapped.place == [1, 2]
        env.unwrapped.place = None
    env.reset(options={"place": [3]})
    assert env.unwrapped.place == [3], "those of a call come first"


def test_options_are_a_key(call, needing_options):
    own = ("train", "env=gym", f"env.id={needing_options}", "agent=random", *SHORT)
    done = call(*own, "env.kwargs.level=1", "env.reset_options.place=5")
    assert done.returncode == 0, done.stderr
    done = call(*own)
    assert "required positional argument: 'level'" in done.stderr
    assert done.stderr.endswith(": env.kwargs.level=... sets this argument\n")


class Undrawn(Observing):
    """Has a constructor without arguments, as Gymnasium allows."""

    def __init__(self):
        super().__init__(VECTOR)


def test_a_constructor_need_not_take_a_render_mode():
    gym.register("Undrawn-v0", Undrawn)
    try:
        assert make("Undrawn-v0").reset(seed=0)[0].shape == (2,)
        with pytest.raises(BadValueError, match=r"Undrawn-v0 cannot be created: .*render_mode"):
            make("Undrawn-v0", render_mode="rgb_array")
    finally:
        del gym.registry["Undrawn-v0"]
