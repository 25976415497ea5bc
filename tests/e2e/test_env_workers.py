"""`env_workers` as a command: the same run whatever their number, and no process left behind."""

import filecmp
import os
import re
import signal
import subprocess
import time

import pytest
from command import CFN
from metrics import rows
from processes import running, stepping

OWN = """
import os, sys

import gymnasium as gym
import numpy as np

class Own(gym.Env):
    observation_space = gym.spaces.Box(0, 99, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, stop_at=None, render_mode=None):
        self.render_mode, self.stop_at, self.total = render_mode, stop_at, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.length = 0, int(self.np_random.integers(2, 9))
        return np.zeros(2, np.float32), {"state": (0, 0)}

    def step(self, action):
        self.steps += 1
        self.total += 1
        if self.total == self.stop_at:
            os._exit(9)
        state = (self.steps, int(action))
        ends = self.steps == self.length
        return np.array(state, np.float32), float(self.np_random.normal()), ends, False, {"state": state}
"""
KEYS = ("env=own", "agent=random", "bonus=count", "tracker=none", "pictures=false", "steps=240", "eval.every=80")
KEYS += ("eval.episodes=1", "checkpoint.every=40", "num_envs=4")


@pytest.fixture
def train(cfn, tmp_path):
    """Train in the user's own environment."""
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "configs" / "env").mkdir(parents=True)
    (tmp_path / "configs" / "env" / "own.yaml").write_text("_target_: mine.Own\n")

    def run(*arguments):
        done = cfn("train", *KEYS, "--config-dir", str(tmp_path / "configs"), *arguments, PYTHONPATH=str(tmp_path))
        assert "Traceback" not in done.stdout + done.stderr
        return done

    return run


def test_a_run_is_the_same_with_two_workers(train, tmp_path):
    folders = {}
    for workers in (1, 2):
        folders[workers] = tmp_path / f"run{workers}"
        done = train(f"env_workers={workers}", f"hydra.run.dir={folders[workers]}")
        assert done.returncode == 0, done.stderr
    one, two = folders.values()
    assert rows(one) == rows(two)
    files = [str(path.relative_to(one)) for path in (*one.glob("counts/*"), *one.glob("checkpoints/*.bin"))]
    assert len(files) == 5, "three evaluations and two checkpoints"
    assert filecmp.cmpfiles(one, two, files, shallow=False) == (files, [], [])


def test_a_worker_that_dies_stops_the_run_with_a_checkpoint_or_is_replaced(train, cfn, tmp_path):
    dying = ("env_workers=2", "+env.stop_at=30", "hydra.run.dir=run")
    done = train(*dying)
    assert done.returncode == 1
    sentence = (
        r"cfn: environment (0|2) of 4 failed in step\(\) \(the process of environments (0 to 1|2 to 3) ended with exit "
        r"code 9\): cfn resume run continues from here, with a new instance of that environment\n"
    )
    assert re.fullmatch(sentence, done.stderr), done.stderr
    trusted = ("--trust", "mine")
    done = cfn("resume", "run", "env.on_error=reset", *trusted, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    (last,) = [row for row in rows(tmp_path / "run") if row["step"] == 240]
    assert last["train/failures"] >= 4


def test_ctrl_c_reaches_all_processes_and_the_run_saves(tmp_path):
    """As in a terminal, where it goes to the whole process group."""
    keys = ("env=gridworld_small", *KEYS[1:5], "steps=10000000", "checkpoint.every=100", "num_envs=4", "env_workers=2")
    process = subprocess.Popen(
        [str(CFN), "train", *keys, "hydra.run.dir=run"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which a shell's background jobs ignore
    )
    try:
        deadline = time.monotonic() + 60
        while not any(tmp_path.glob("run/checkpoints/step_*.json")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        workers = stepping(process.pid)
        assert len(workers) == 2
        os.killpg(process.pid, signal.SIGINT)
        said, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors == "cfn: stopped\n"
    assert "SIGINT at step " in said
    assert not any(map(running, workers))
