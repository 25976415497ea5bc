"""The examples run, with few steps."""

import collections
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
STEPS = {"plain_loop": 400, "cleanrl_dqn": 800, "sb3_dqn": 500, "sb3_ppo": 1024, "sb3_sac": 250, "torchrl_dqn": 320}

pytestmark = [pytest.mark.process, pytest.mark.thorough]


def run(name, *arguments):
    """Run a script in the folder of examples, and return what it prints."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--steps", str(STEPS[name]), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tested():
    scripts = {path.stem for path in EXAMPLES.glob("*.py")} - {"tasks", "learning_curve", "curves"}
    assert scripts == {*STEPS, "crowding", "initial_bonuses", "uninformed"}


def test_crowding_measures_and_draws(tmp_path):
    command = [sys.executable, str(EXAMPLES / "crowding.py"), "--cells", "4", "6", "--features", "8", "64"]
    out = tmp_path / "figure.png"
    done = subprocess.run([*command, "--seeds", "1", "--out", out], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()]
    factors = {(row[0], row[1]): float(row[3]) for row in rows}
    assert factors["36", "8"] < 0.7, "too small with more states than features"
    assert factors["36", "64"] > 0.95
    assert out.stat().st_size > 1000


def test_initial_bonuses_differ_less_with_more_targets_and_outputs():
    command = [sys.executable, str(EXAMPLES / "initial_bonuses.py"), "--seeds", "2", "--outputs", "32", "128"]
    done = subprocess.run([*command, "--categories", "30"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    found = {(int(row[0]), name): float(row[i].split()[0]) for row in rows for i, name in ((1, "RND"), (2, "DRND"))}
    assert 0 < found[32, "DRND"] < 0.5 * found[32, "RND"]
    assert 0 < found[128, "RND"] < 0.5 * found[32, "RND"], "the mean of more outputs varies less"


def example(name):
    """Load a module of the examples by its path: tests/helpers has a module named tasks, too."""
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_chances_of_uninformed_walks():
    """The uniform walk, followed cell by cell."""
    command = [sys.executable, str(EXAMPLES / "uninformed.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    env = example("tasks").Rooms()
    found, mass = 0.0, {env.start: 1.0}
    for _ in range(env.max_steps):
        after = collections.Counter()
        for cell, share in mass.items():
            for action in range(4):
                after[env.moved(cell, action)] += share / 4
        found += after.pop(env.goal, 0.0)
        mass = after
    assert f"repeated with probability 0.0: one episode of {1 / found:,.0f}\n" in done.stdout


def test_a_plain_loop_ends_with_a_scatter(tmp_path):
    out = run("plain_loop", "--out", str(tmp_path / "scatter.png"))
    assert "states visited, mean squared error" in out
    assert (tmp_path / "scatter.png").stat().st_size > 5000


def test_a_loop_in_the_manner_of_cleanrl():
    assert run("cleanrl_dqn").startswith("DQN, bonus=cfn, seed 0: return ")


@pytest.mark.parametrize(("name", "algorithm"), [("sb3_dqn", "DQN"), ("sb3_ppo", "PPO"), ("sb3_sac", "SAC")])
def test_stable_baselines3(name, algorithm, tmp_path):
    pytest.importorskip("stable_baselines3")
    if name == "sb3_sac":
        pytest.importorskip("gymnasium_robotics")
    out = run(name, "--curve", str(tmp_path / "curve.csv"))
    assert f"{algorithm}, bonus=cfn, seed 0: return " in out
    header, *rows = (tmp_path / "curve.csv").read_text().splitlines()
    assert header == "step,return"
    assert len(rows) >= (1 if STEPS[name] >= 500 else 0)


def test_torchrl():
    pytest.importorskip("torchrl")
    out = run("torchrl_dqn")
    assert "TorchRL's DQN, bonus=cfn: the goal was reached" in out
    assert "'bonus/loss'" in out
