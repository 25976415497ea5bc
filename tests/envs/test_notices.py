import logging
import warnings

import gymnasium as gym
import pytest

from cfn.envs.notices import log_warnings_of_gymnasium


@pytest.fixture
def logged(caplog):
    """The messages logged while Gymnasium's warnings go to the log."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        log_warnings_of_gymnasium()
        log_warnings_of_gymnasium()  # as every run of a sweep does
        yield lambda: [record.getMessage() for record in caplog.records]


def test_warnings_are_logged_once_on_one_line_without_colours(logged, caplog, capsys):
    for _ in range(3):
        gym.logger.warn("The observation is odd:\n  %s", "very odd")
    gym.logger.deprecation("Write a newer version.")
    gym.logger.error("This is bad.")
    assert logged() == [
        "Gymnasium: The observation is odd: very odd",
        "Gymnasium: Write a newer version.",
        "Gymnasium: This is bad.",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert capsys.readouterr().err == ""


def test_other_warnings_are_shown_as_before(logged, capsys):
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print(f"shown: {message}")
        log_warnings_of_gymnasium()
        warnings.warn("WARN: mine", stacklevel=1)
    assert capsys.readouterr().out == "shown: WARN: mine\n"
    assert logged() == []


ODD = """
import gymnasium as gym, numpy as np

class Odd(gym.Env):
    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2), {}

    def step(self, action):
        return np.ones(2), 0.0, False, False, {}

gym.register("Odd-v0", entry_point=Odd, max_episode_steps=5)
gym.register("Odd-v0", entry_point=Odd, max_episode_steps=5)
"""


def test_a_run_prints_each_warning_once(cfn, tmp_path):
    """Both of the passive checker, in every environment of the run, and of an import."""
    (tmp_path / "odd.py").write_text(ODD)
    keys = ("env=gym", "env.id=odd:Odd-v0", "agent=random", "bonus=none", "tracker=none", "hydra.run.dir=run")
    done = cfn("train", *keys, "steps=40", "eval.every=20", "env.max_steps=5", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "\x1b" not in said
    assert ".py" not in said
    lines = [line for line in said.splitlines() if line.startswith("Gymnasium: ")]
    assert any("Overriding environment Odd-v0" in line for line in lines)
    assert any("float64" in line or "dtype" in line for line in lines)
    assert len(lines) == len(set(lines))
    assert "Gymnasium: " in (tmp_path / "run" / "train.log").read_text()
