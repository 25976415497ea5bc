"""The README: its commands in their exact form, its length, its examples."""

import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
import yaml

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_WORDS = 1200
"""As `wc -w` counts them, code blocks included."""
RUN_IT = "pip install -e '.[paper]' -c constraints.txt\ncfn train\n"
TEST_IT = "pip install nox\nnox -s tests lint types\n"


def first_block(heading):
    """The first fenced block below a heading, as `.ci/run` finds it."""
    return re.search(rf"^## {heading}\n.*?^```[^\n]*\n(.*?)^```", README, re.S | re.M).group(1)


def python_blocks():
    return re.findall(r"^```python\n(.*?)^```", README, re.S | re.M)


def test_the_two_commands_have_their_exact_form():
    assert first_block("Run it") == RUN_IT
    assert first_block("Test it") == TEST_IT


def test_it_is_short():
    assert len(README.split()) <= MOST_WORDS


def test_there_are_ten_commands():
    commands = first_block("Ten commands").splitlines()
    assert len(commands) == 10
    assert all(command.startswith("cfn ") for command in commands)


def test_the_bonus_works_in_a_plain_loop():
    torch.set_num_threads(1)  # small batches; the tests share the cores
    names = {}
    exec(python_blocks()[1], names)
    assert names["intrinsic_rewards"].any(), "the loop is long enough for learning to start"
    novelty = names["bonus"].novelty(names["observations"])
    assert novelty.shape == (4,)
    assert np.isfinite(novelty).all()


def test_the_example_of_a_bonus_pays_for_first_visits():
    names = {}
    exec(python_blocks()[2], names)
    bonus = names["FirstVisits"](visits=2)
    observations = np.stack([gym.spaces.Box(0, 1, (3,)).sample()])
    assert [float(bonus.observe(observations)[0]) for _ in range(4)] == [1, 1, 0, 0]


def test_ci_runs_the_same_commands():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    steps = {step.get("name"): step.get("run") for step in workflow["jobs"]["test"]["steps"]}
    assert (steps["Run it"], steps["Test it"]) == (RUN_IT, TEST_IT)
    assert any("nox -s docs" in step.get("run", "") for step in workflow["jobs"]["docs"]["steps"])
