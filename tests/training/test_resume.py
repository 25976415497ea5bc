"""A run that is broken off and resumed is, in every number, the run that was not."""

import os
import random
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import yaml
from command import CFN
from metrics import rows
from resuming import (
    CARTPOLE,
    COMMON,
    ENVIRONMENTS,
    GRID,
    PRODUCT,
    SMALL_CFN,
    VECTOR_CFN,
    broken_off,
    claimed,
    resumed,
)

from cfn.analysis.figures import single_run
from cfn.envs.gridworld import Gridworld
from cfn.errors import UsageError
from cfn.runs.folder import Run
from cfn.tracking.base import Tracker
from cfn.tracking.pictures import Pictures
from cfn.training.loop import Training
from cfn.training.signals import StoppedError

PAIRS = {
    f"{name}-{bonus[0].removeprefix('bonus=')}": (*env, *bonus)
    for name, (env, *bonuses) in ENVIRONMENTS.items()
    for bonus in bonuses
}
QUICK = ("gridworld-cfn", "gridworld-rnd", "gridworld-pixelcnn", "taxi-none", "cartpole-cfn", "montezuma-cfn")
QUICK += ("fetch-cfn", "adroit-none", "ant-rnd")
QUICK += tuple(f"gridworld-{name}" for name in ("cts", "product", "noveld", "successor"))
TOLD_APART = {"train/return", "train/bonus", "train/length", "eval/return", "explore/states"}


def both(tmp_path, monkeypatch, at, *overrides):
    """A run that was broken off at this step, and the same run that was not."""
    overrides = ("eval.max_steps=30", *overrides)
    whole, training = claimed(tmp_path / "whole", *overrides)
    training.run(whole)
    return broken_off(tmp_path / "broken", at, monkeypatch, *overrides), whole


@pytest.mark.parametrize(
    "overrides",
    [
        pytest.param(PAIRS[pair], id=pair, marks=pytest.mark.thorough if pair in QUICK else pytest.mark.slow)
        for pair in PAIRS
    ],
)
def test_every_pair_resumes_bit_for_bit(tmp_path, monkeypatch, overrides):
    """Broken off 11 steps after a checkpoint, with buffers that have wrapped around."""
    broken, whole = both(tmp_path, monkeypatch, 111, *overrides, "steps=140", "eval.every=50", "checkpoint.every=50")
    assert resumed(broken, monkeypatch) == rows(whole.folder)
    assert broken.recorded_state == "finished"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "overrides",
    [
        (*GRID, *SMALL_CFN, "num_envs=3", "agent.noisy=true", "agent.double=true", "agent.dueling=true"),
        (*GRID, *SMALL_CFN, "bonus.flips=gaussian", "bonus.update_period=3", "agent.update_period=2", "num_envs=2"),
        (*CARTPOLE, "bonus=rnd", "num_envs=4"),
        (*CARTPOLE, *PRODUCT, "num_envs=3"),
        ("env=gridworld_small", "agent=random", "bonus=none"),
    ],
    ids=["noisy", "periods", "many", "episodic", "random"],
)
def test_so_do_others(tmp_path, monkeypatch, overrides):
    broken, whole = both(tmp_path, monkeypatch, 100, *overrides, "steps=150", "eval.every=50", "checkpoint.every=40")
    assert resumed(broken, monkeypatch) == rows(whole.folder)


@pytest.mark.thorough
@pytest.mark.parametrize(("before", "after"), [(1, 2), (3, 1)])
def test_the_number_of_workers_may_change(tmp_path, monkeypatch, before, after):
    overrides = (*CARTPOLE, *VECTOR_CFN, "num_envs=4", "eval.max_steps=30", "steps=160", "eval.every=50")
    overrides += ("checkpoint.every=40",)
    whole, training = claimed(tmp_path / "whole", *overrides)
    training.run(whole)
    broken = broken_off(tmp_path / "broken", 100, monkeypatch, *overrides, f"env_workers={before}")
    assert resumed(broken, monkeypatch, f"env_workers={after}") == rows(whole.folder)


@pytest.mark.thorough
def test_it_can_be_broken_off_again_and_again(tmp_path, monkeypatch):
    overrides = (*GRID, *SMALL_CFN, "steps=150", "eval.every=50", "checkpoint.every=20")
    broken, whole = both(tmp_path, monkeypatch, 51, *overrides)
    assert resumed(broken, monkeypatch, "steps=90")[-1]["step"] == 90
    assert resumed(broken, monkeypatch, "steps=150")[-1] == rows(whole.folder)[-1]


KILLED = """
import os, signal, sys
from cfn.cli.main import main
from cfn.runs import atomic
from cfn.tracking.console import Console

where, left = sys.argv.pop(1), int(sys.argv.pop(1))

def or_die(call):
    def wrapper(*arguments):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments)
    return wrapper

if where == "step":
    Console.tick = or_die(Console.tick)
else:
    atomic.os.fsync = or_die(os.fsync)
sys.exit(main())
"""
"""Runs a command that is killed in a step, or while a file is written, after so many of them."""


def check_killed_run(tmp_path, overrides, steps, where):
    """A run that is killed by SIGKILL and resumed; the moment is drawn from the seed that pytest-randomly prints."""
    every, left = (
        steps // 8,
        random.randrange(*((0, steps) if where == "step" else (4, 40))),
    )  # 4 writes create the folder
    arguments = [*COMMON, *overrides, f"steps={steps}", f"checkpoint.every={every}", f"eval.every={2 * every}"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train = ["train", *arguments]
    subprocess.run([str(CFN), *train, f"hydra.run.dir={whole}"], check=True, capture_output=True, env=environment)
    killed = [sys.executable, "-c", KILLED, where, str(left), *train, f"hydra.run.dir={broken}"]
    process = subprocess.run(killed, capture_output=True, text=True, env=environment)
    assert process.returncode == -signal.SIGKILL, process.stderr
    done = subprocess.run([str(CFN), "resume", str(broken)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert rows(broken) == rows(whole), f"killed after {left} {where}s"
    assert set().union(*rows(whole)) >= TOLD_APART - ({"train/bonus"} if "bonus=none" in overrides else set())


@pytest.mark.process
@pytest.mark.parametrize("where", ["step", "write"])
def test_a_run_that_was_killed_resumes_bit_for_bit(tmp_path, where):
    check_killed_run(tmp_path, (*GRID, *SMALL_CFN), 160, where)


@pytest.mark.slow
@pytest.mark.parametrize("overrides", PAIRS.values(), ids=PAIRS)
def test_every_pair_can_be_killed(tmp_path, overrides):
    check_killed_run(tmp_path, overrides, 2000, "step")


@pytest.mark.thorough
def test_a_finished_run_can_be_extended(tmp_path, monkeypatch):
    overrides = (*GRID, *SMALL_CFN, "eval.every=50", "checkpoint.every=50")
    longer, training = claimed(tmp_path / "longer", *overrides, "steps=150")
    training.run(longer)
    run, training = claimed(tmp_path / "run", *overrides, "steps=100")
    training.run(run)
    with pytest.raises(UsageError, match=r"is finished, at step 100: steps=200 \(for example\) would extend it"):
        resumed(run, monkeypatch)
    assert resumed(run, monkeypatch, "steps=150") == rows(longer.folder)
    assert yaml.safe_load((run.folder / ".hydra/config.yaml").read_text())["steps"] == 150


def test_fewer_steps_than_were_taken_are_refused(tmp_path, monkeypatch):
    """Else a run that was broken off would count as finished, without the evaluation at its end."""
    run = broken_off(tmp_path, 52, monkeypatch, *GRID, "bonus=none", "num_envs=4", "steps=80", "checkpoint.every=20")
    before = run.files.metrics.read_bytes()
    for steps in (10, 38, 40):
        with pytest.raises(UsageError, match=rf"^steps={steps}: .* is already at step 40; choose a larger `steps`$"):
            resumed(run, monkeypatch, f"steps={steps}")
    assert run.files.metrics.read_bytes() == before
    assert run.recorded_state == "stopped"
    assert resumed(run, monkeypatch, "steps=42")[-1]["step"] == 44


def test_what_would_change_what_was_learned_is_refused_by_name(tmp_path, monkeypatch):
    run, training = claimed(tmp_path, *GRID, *SMALL_CFN, "steps=20", "checkpoint.every=10")
    training.run(run)
    for override in ("bonus.lr=1", "env.size=9", "seed=1", "agent.hidden=[3]", "num_envs=2"):
        key = override.partition("=")[0]
        with pytest.raises(UsageError, match=f"{key} cannot be changed in a started run"):
            resumed(run, monkeypatch, override)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("max_steps: 75", "max_steps: 5", r"env\.max_steps is 5 in the config of .* but was 75 at"),
        (
            "seed: 0",
            "seed: 7",
            r"^seed is 7 in the config of .* but was 0 at the checkpoint: it cannot be",
        ),
        ("cfn.bonuses.none.NoBonus", "cfn.bonuses.counts.CountBonus", r'bonus\._target_ is "cfn\.bonuses\.counts'),
    ],
)
def test_a_config_that_was_altered_by_hand_is_refused(tmp_path, monkeypatch, before, after, sentence):
    run, training = claimed(tmp_path, *GRID, "bonus=none", "steps=20", "checkpoint.every=10")
    training.run(run)
    path = tmp_path / ".hydra" / "config.yaml"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(UsageError, match=sentence):
        resumed(run, monkeypatch, "steps=40")
    assert rows(tmp_path)[-1]["step"] == 20, "nothing was touched"


def test_how_it_goes_on_can_be_changed(tmp_path, monkeypatch):
    run, training = claimed(tmp_path, *GRID, *SMALL_CFN, "steps=40", "eval.every=20", "checkpoint.every=20")
    training.run(run)
    again = resumed(run, monkeypatch, "steps=60", "eval.every=5", "checkpoint.keep=1", "threads=2")
    assert [row["step"] for row in again if "eval/return" in row] == [20, 40, 45, 50, 55, 60]
    assert len(list((tmp_path / "checkpoints").glob("step_*.json"))) == 1
    with pytest.raises(UsageError, match=r"eval.every=0: should be greater than or equal to 1"):
        resumed(run, monkeypatch, "steps=80", "eval.every=0")
    with pytest.raises(UsageError, match="steps: this is not of the form key=value"):
        resumed(run, monkeypatch, "steps")


def test_what_was_written_after_the_checkpoint_is_cut(tmp_path, monkeypatch):
    run = broken_off(tmp_path, 59, monkeypatch, *GRID, *SMALL_CFN, "steps=80", "eval.every=10", "checkpoint.every=25")
    assert [row["step"] for row in rows(tmp_path) if "eval/return" in row] == [10, 20, 30, 40, 50]
    run.files.metrics.write_text(run.files.metrics.read_text() + '{"step": 59, "half')
    tables = sorted(path.name for path in run.files.counts.iterdir())
    seen = [row["step"] for row in resumed(run, monkeypatch) if "eval/return" in row]
    assert seen == [10, 20, 30, 40, 50, 60, 70, 80]
    assert sorted(path.name for path in run.files.counts.iterdir())[: len(tables)] == tables


def test_a_run_killed_before_its_first_checkpoint_starts_again(tmp_path, monkeypatch):
    overrides = (*GRID, "bonus=count", "env.max_steps=9", "steps=80", "eval.every=10", "checkpoint.every=50")
    whole, training = claimed(tmp_path / "whole", *overrides)
    training.run(whole)
    run = broken_off(tmp_path / "killed", 30, monkeypatch, *overrides)
    run.write_summary("running", 0, 0.0, {})  # a killed run says nothing
    assert len(rows(run.folder)) > 3
    assert resumed(run, monkeypatch, "checkpoint.every=20") == rows(whole.folder)
    fresh, _ = claimed(tmp_path / "claimed", *overrides)  # killed before it took a step
    assert resumed(fresh, monkeypatch) == rows(whole.folder)


@pytest.mark.parametrize(
    ("at", "checkpoints"), [(60, "checkpoint.every=50"), (30, "checkpoint.every=null")], ids=["removed", "none"]
)
def test_without_a_checkpoint_there_is_nothing_to_resume(tmp_path, monkeypatch, at, checkpoints):
    run = broken_off(tmp_path, at, monkeypatch, *GRID, "bonus=none", "steps=80", checkpoints)
    run.write_summary("running", 0, 0.0, {})
    shutil.rmtree(run.files.checkpoints, ignore_errors=True)
    with pytest.raises(UsageError, match="has no usable checkpoint: none was written, or they were removed"):
        resumed(run, monkeypatch)


def test_a_run_killed_while_it_wrote_its_first_checkpoint_starts_again(tmp_path, monkeypatch):
    """The metrics of the checkpoint's step are there, the checkpoint is not."""
    overrides = (*GRID, "bonus=none", "steps=80", "eval.every=25", "checkpoint.every=50")
    broken, whole = both(tmp_path, monkeypatch, 51, *overrides)
    broken.write_summary("running", 0, 0.0, {})
    assert rows(broken.folder)[-1]["step"] == 50
    (manifest,) = broken.files.checkpoints.glob("*.json")
    manifest.unlink()
    assert any(broken.files.checkpoints.iterdir())
    assert resumed(broken, monkeypatch) == rows(whole.folder)


def test_folders_that_hold_no_run(tmp_path):
    with pytest.raises(UsageError, match=r"is not a run folder: it has no summary\.json"):
        Run.open(tmp_path)
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(UsageError, match=r"is not a run folder: it has no config\.yaml"):
        Run.open(tmp_path)
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra/config.yaml").write_text("{}")
    with pytest.raises(UsageError, match="cannot be read"):
        Run.open(tmp_path)


class Forgetful:
    """An environment that its seed and actions do not bring back."""

    generator = np.random.default_rng(0)


def test_an_environment_that_cannot_be_brought_back_is_warned_of(tmp_path, monkeypatch, caplog):
    run = broken_off(tmp_path, 31, monkeypatch, *GRID, "bonus=none", "steps=60", "checkpoint.every=10")
    step = Gridworld.step
    monkeypatch.setattr(Gridworld, "step", lambda env, action: step(env, Forgetful.generator.integers(4)))
    trained = []
    load = Training.load
    monkeypatch.setattr(Training, "load", lambda training, read: trained.append(training) or load(training, read))
    assert resumed(run, monkeypatch)[-1]["step"] == 60
    assert "Environment 0 could not be restored" in caplog.text
    batch = trained[0].agent._replay.sample(500, np.random.default_rng(0))
    for before, after in zip(batch.states, batch.next_states, strict=True):
        moved = np.abs(np.argwhere(before)[0] - np.argwhere(after)[0]).sum() // 2
        assert moved <= 3, "n-step returns lead as far as three steps do, and never from one episode to another"


def test_a_run_with_a_signal_in_its_last_step_is_finished(tmp_path, monkeypatch):
    """The signal still ends the command, so that a sweep does not go on to its next run."""
    run, training = claimed(tmp_path, *GRID, "bonus=none", "steps=40", "eval.every=20", "checkpoint.every=20")

    class StopsTheLastStep(Tracker):
        def evaluated(self, step, rooms):
            if step == 40:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(StoppedError):
        training.run(run, lambda run, mirror: StopsTheLastStep(run))
    assert run.recorded_state == "finished"


def test_killed_at_its_very_end_a_run_can_be_finished(tmp_path, monkeypatch):
    run = broken_off(tmp_path, 40, monkeypatch, *GRID, "bonus=none", "steps=40", "eval.every=20", "checkpoint.every=20")
    before = rows(tmp_path)
    assert run.recorded_state == "stopped"
    assert resumed(run, monkeypatch) == before
    assert run.recorded_state == "finished"


@pytest.mark.thorough
def test_an_extended_run_goes_on_drawing(tmp_path, monkeypatch):
    run, training = claimed(
        tmp_path, *GRID, "bonus=none", "steps=40", "eval.every=4", "checkpoint.every=20", "pictures=true"
    )
    training.run(run)
    drawn = []
    monkeypatch.setattr(single_run, "draw_run", lambda *_: drawn.append(1) or {})
    resumed(run, monkeypatch, "steps=80", add_tracker=Pictures)
    assert len(drawn) == 5


def test_numbers_are_read_as_cfn_train_reads_them(tmp_path, monkeypatch):
    run, training = claimed(tmp_path, *GRID, "bonus=none", "steps=20", "eval.every=10", "checkpoint.every=20")
    training.run(run)
    assert resumed(run, monkeypatch, "steps=3e1")[-1]["step"] == 30
    with pytest.raises(UsageError, match=r"steps=\[: this is not of the form key=value"):
        resumed(run, monkeypatch, "steps=[")


class NumpyStates(Gridworld):
    """Reports its state as a tuple of NumPy's integers."""

    def _state(self):
        return tuple(np.array(super()._state()))


def test_states_of_numpys_integers_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr("cfn.envs.gridworld.Gridworld", NumpyStates)
    run = broken_off(tmp_path, 31, monkeypatch, *GRID, "bonus=count", "steps=60", "checkpoint.every=10")
    assert resumed(run, monkeypatch)[-1]["step"] == 60
