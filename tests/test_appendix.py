"""The hyperparameter tables of the paper's Appendix D: the chosen values, and the values that were searched.

Every row is written as in the paper: all values that a column lists, with the chosen one (bold there) named apart.
"""

import gymnasium as gym
import pytest
import torch
from composing import composed
from hydra import compose, initialize_config_dir

from cfn.config import CONF
from cfn.launch.sweeper import searched_values

SUITES = {"Gridworld": "gridworld", "Fetch": "fetch_push", "Adroit": "pen", "Ant": "antmaze", "Atari": "montezuma"}
"""An environment of each column."""

CFN_SCALES, RND_SCALES = [0.001, 0.003, 0.01, 0.03], [5e-5, 1e-4, 5e-4, 1e-3]
RAINBOW = {  # key: {column: (values, chosen)}
    "gamma": {"Gridworld": ([0.99], 0.99), "Atari": ([0.99], 0.99)},
    "lr": {"Gridworld": ([1.25e-4, 1e-5], 1.25e-4), "Atari": ([1.25e-4, 6.25e-5], 1.25e-4)},
    "n_step": {"Gridworld": ([3], 3), "Atari": ([3], 3)},
    "min_size": {"Gridworld": ([1_000], 1_000), "Atari": ([20_000], 20_000)},
    "atoms": {"Gridworld": ([51], 51), "Atari": ([51], 51)},
    "vmin": {"Gridworld": ([-10], -10), "Atari": ([-10], -10)},
    "vmax": {"Gridworld": ([10], 10), "Atari": ([10], 10)},
    "batch_size": {"Gridworld": ([32], 32), "Atari": ([32], 32)},
}
SAC = {
    "gamma": {"Fetch": ([0.99], 0.99), "Adroit": ([0.99], 0.99), "Ant": ([0.99], 0.99)},
    "lr": {"Fetch": ([3e-4], 3e-4), "Adroit": ([1e-4, 3e-4], 1e-4), "Ant": ([3e-4], 3e-4)},
    "n_step": {"Fetch": ([3], 3), "Adroit": ([3], 3), "Ant": ([3], 3)},
    "min_size": {"Fetch": ([10_000], 10_000), "Adroit": ([10_000], 10_000), "Ant": ([10_000], 10_000)},
    "reward_scale": {"Fetch": ([1.0], 1.0), "Adroit": ([1.0, 3.0, 10.0, 30.0], 30.0), "Ant": ([0.1], 0.1)},
    "batch_size": {"Fetch": ([256], 256), "Adroit": ([256], 256), "Ant": ([256], 256)},
}
COIN_FLIP = {
    "scale": {
        "Gridworld": (CFN_SCALES, 0.01),
        "Fetch": (CFN_SCALES, 0.001),
        "Adroit": (CFN_SCALES, 0.001),
        "Ant": (CFN_SCALES, 0.01),
        "Atari": (CFN_SCALES, 0.01),
    },
    "normalize": {
        "Gridworld": ([True, False], True),
        **{column: ([False], False) for column in ("Fetch", "Adroit", "Ant", "Atari")},
    },
    "lr": {
        **{column: ([1e-4], 1e-4) for column in ("Gridworld", "Fetch", "Adroit")},
        "Ant": ([1e-3], 1e-3),
        "Atari": ([1e-4, 1e-5], 1e-5),
    },
    "capacity": {
        **{column: ([1_000_000], 1_000_000) for column in ("Gridworld", "Fetch", "Adroit", "Ant")},
        "Atari": ([20_000_000], 20_000_000),
    },
    "batch_size": {
        **{column: ([1024], 1024) for column in ("Gridworld", "Fetch", "Adroit", "Ant")},
        "Atari": ([512], 512),
    },
    "update_period": {**{column: ([1], 1) for column in ("Gridworld", "Fetch", "Adroit", "Ant")}, "Atari": ([4], 4)},
    "d": {column: ([20], 20) for column in SUITES},
}
PIXELCNN = {
    "scale": {"Gridworld": ([0.1, 0.5, 1.0], 0.5), "Atari": ([0.1], 0.1)},
    "gain_scale": {"Gridworld": ([0.1, 0.5, 1.0, 5.0], 0.5), "Atari": ([1.0], 1.0)},
    "lr": {"Gridworld": ([1e-4], 1e-4), "Atari": ([1e-4], 1e-4)},
}
RND = {
    "scale": {
        "Gridworld": (RND_SCALES, 1e-4),
        **dict.fromkeys(("Fetch", "Adroit", "Ant"), (RND_SCALES, 5e-5)),
        "Atari": ([5e-5], 5e-5),
    },
    "lr": {column: ([1e-4], 1e-4) for column in SUITES},
}
TABLES = {"rainbow": RAINBOW, "sac": SAC, "cfn": COIN_FLIP, "pixelcnn": PIXELCNN, "rnd": RND}


def rows():
    for name, table in TABLES.items():
        for column in next(iter(table.values())):
            yield name, column, {key: columns[column] for key, columns in table.items()}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "column", "table"), list(rows()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_chosen_values_are_defaults_and_all_values_are_searched(name, column, table):
    group = "agent" if name in ("rainbow", "sac") else "bonus"
    overrides = [f"env={SUITES[column]}", *([f"bonus={name}"] if group == "bonus" else [])]
    component = getattr(composed(*overrides)[0], group)
    assert component.name == name
    assert {key: component.keys[key] for key in table} == {key: chosen for key, (_, chosen) in table.items()}
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=overrides, return_hydra_config=True)
    searched = searched_values(config, "all")
    expected = {f"{group}.{key}": values for key, (values, _) in table.items() if len(values) > 1}
    assert {
        key: list(values) for key, values in searched.items() if key.startswith(group) and len(values) > 1
    } == expected


@pytest.mark.parametrize(
    ("column", "actions", "epsilon"),
    [
        *((column, gym.spaces.Discrete(2), 1.5e-4) for column in ("Gridworld", "Atari")),
        *((column, gym.spaces.Box(-1, 1, (2,)), 1e-8) for column in ("Fetch", "Adroit", "Ant")),
    ],
)
def test_adams_epsilon_is_no_key_but_has_the_papers_value(column, actions, epsilon):
    """The first step of Adam on a gradient g is lr * g / (|g| + epsilon): half of lr if |g| is epsilon."""
    agent = composed(f"env={SUITES[column]}", "agent.capacity=300", "agent.hidden=[4]")[0].agent.build(
        observation_space=gym.spaces.Box(-1, 1, (3,)), action_space=actions
    )
    (group,) = agent._optimizer.param_groups
    parameter = group["params"][0]
    before = parameter.detach().clone()
    parameter.grad = torch.full_like(parameter, epsilon)
    agent._optimizer.step()
    assert (before - parameter.detach()).numpy() == pytest.approx(group["lr"] / 2, rel=1e-2)
