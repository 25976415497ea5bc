"""An environment that calls sys.exit fails with a sentence, wherever it does that; the run never ends in silence."""

import re

import pytest

LEAVING = """
import os, sys

import gymnasium as gym
import numpy as np

def leave(where):
    if os.environ.get("LEAVE") == where:
        sys.exit("no licence")

leave("import")

class Leaving(gym.Env):
    metadata = {"render_modes": ["rgb_array"]}
    observation_space = gym.spaces.Box(0, 9, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    made = 0

    def __init__(self, render_mode=None):
        self.render_mode, self.steps = render_mode, 0
        leave("constructor")
        type(self).made += 1
        if os.environ.get("LEAVE") == "recreation" and type(self).made > 3:
            sys.exit("no second licence")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        leave("reset")
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps == 3:
            leave("step")
            leave("recreation")
        return np.ones(2, np.float32), 0.0, self.steps == 5, False, {}

    def render(self):
        leave("render")
        return np.zeros((4, 4, 3), np.uint8)

    def close(self):
        leave("close")

gym.register("Leaving-v0", entry_point=Leaving, disable_env_checker=True)
"""
KEYS = (
    "agent=random",
    "bonus=none",
    "tracker=none",
    "pictures=false",
    "hydra.run.dir=run",
    "steps=40",
    "eval.every=20",
)
KEYS += ("eval.episodes=2", "checkpoint.every=10")


@pytest.fixture
def leaving(cfn, tmp_path):
    """Run a command; the environment calls sys.exit at a place."""
    (tmp_path / "leaving.py").write_text(LEAVING)
    (tmp_path / "configs" / "env").mkdir(parents=True)
    (tmp_path / "configs" / "env" / "own.yaml").write_text("_target_: leaving.Leaving\n")

    def run(place, *arguments):
        done = cfn(*arguments, PYTHONPATH=str(tmp_path), LEAVE=place)
        assert "Traceback" not in done.stdout + done.stderr
        return done

    return run


def assert_told(done, sentence):
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert re.match(f"cfn: .*{sentence}", last), last


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("import", r"leaving.* cannot be imported.*SystemExit: no licence"),
        ("constructor", r"cannot be (created|constructed): SystemExit: no licence"),
        ("reset", r"failed in reset\(\) \(SystemExit: no licence\)"),
        ("step", r"failed in step\(\) \(SystemExit: no licence\): cfn resume run continues"),
        ("recreation", r"cannot be (created|constructed): SystemExit: no second licence"),
    ],
)
@pytest.mark.parametrize("env", [("env=gym", "env.id=leaving:Leaving-v0"), ("env=own",)], ids=["gymnasium", "own"])
def test_training_says_where_the_environment_left(leaving, env, place, sentence):
    options = ("--config-dir", "configs") if env == ("env=own",) else ()
    done = leaving(place, "train", *options, *env, *KEYS)
    assert_told(done, sentence)


def test_playing_filming_and_resuming_say_so_too(leaving):
    assert leaving("", "train", "env=gym", "env.id=leaving:Leaving-v0", *KEYS).returncode == 0
    trusted = ("run", "--trust", "leaving")
    assert_told(leaving("render", "eval", "--video", *trusted), "cannot be rendered: no licence")
    assert_told(leaving("step", "eval", *trusted), r"failed in step\(\) \(SystemExit: no licence\)")
    assert_told(leaving("import", "resume", "steps=60", *trusted), "SystemExit: no licence")
    assert_told(leaving("constructor", "resume", "steps=60", *trusted), "SystemExit: no licence")
    assert leaving("close", "resume", "steps=60", *trusted).returncode == 0
    assert leaving("close", "eval", *trusted).returncode == 0
