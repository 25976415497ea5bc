"""Faults of a run and their consequences. The table of faults in the documentation cites these tests."""

import contextlib
import errno
import fcntl
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from asynchrony import pretend_gpu
from command import CFN
from metrics import rows
from resuming import COMMON, GRID, SMALL_CFN, broken_off, claimed, resumed

from cfn.checkpoints.encoding import from_hashed_json, to_hashed_json
from cfn.checkpoints.store import Checkpoints
from cfn.envs.gridworld import Gridworld
from cfn.errors import UsageError
from cfn.runs.folder import Run
from cfn.training.resume import config_of

SHORT = (*GRID, *SMALL_CFN, "steps=100", "eval.every=50", "checkpoint.every=20")
ENDLESS = (*COMMON, *GRID, "bonus=none", "steps=1000000", "eval.every=100", "checkpoint.every=50")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A run that has ended."""
    run, training = claimed(tmp_path_factory.mktemp("original") / "run", *SHORT)
    training.run(run)
    return run


@pytest.fixture
def ended(original, tmp_path):
    """A copy of a run that has ended, as somebody may have sent it."""
    return Run.open(shutil.copytree(original.folder, tmp_path / "run"))


def started(folder, *overrides):
    """A run as a process of its own, once it has a checkpoint."""
    process = subprocess.Popen(
        [str(CFN), "train", *ENDLESS, *overrides, f"hydra.run.dir={folder}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which a shell's background jobs ignore
    )
    deadline = time.monotonic() + 120
    while not any(folder.glob("checkpoints/step_*.json")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1", "SIGUSR2"])
def test_a_signal_makes_it_save_and_stop(tmp_path, name):
    process = started(tmp_path)
    process.send_signal(signal.Signals[name])
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.Signals[name]
    assert errors == "cfn: stopped\n"
    assert f"{name} at step " in said
    assert "cfn resume " in said
    end = summary(tmp_path)
    assert end["state"] == "stopped"
    assert Checkpoints(tmp_path / "checkpoints").latest().step == end["steps"], "not a step is lost"


def test_a_second_process_is_refused(call, tmp_path):
    folder = tmp_path / "run"
    process = started(folder)
    try:
        done = call("resume", folder)
        assert done.returncode == 1
        assert f"is already running, in process {process.pid} on " in done.stderr
        done = call("train", *ENDLESS, f"hydra.run.dir={folder}")
        assert done.returncode == 1
        assert "run holds an unfinished run (running): continue it with cfn resume " in done.stderr
    finally:
        process.kill()
        process.communicate()
    with (folder / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a killed process has no lock any more


@pytest.fixture
def disk(tmp_path):
    """A disk of six megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        reason = mounted.stderr.decode().strip()
        assert os.geteuid() != 0 or "permission denied" in reason, f"root cannot mount a disk: {reason}"
        pytest.skip(f"mounting a small disk needs root: {reason}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk):
    """Fill a disk to its last block; return the file to delete."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler


def test_a_full_disk_stops_the_run_and_leaves_the_last_checkpoint_good(cfn, disk):
    folder = disk / "run"
    process = started(folder)
    filler = fill(disk)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.startswith("cfn: ")
    assert len(errors.splitlines()) == 1, errors
    assert "No space left on device" in errors
    filler.unlink()
    step = Checkpoints(folder / "checkpoints").latest().step
    done = cfn("resume", str(folder), f"steps={step + 60}")
    assert done.returncode == 0, done.stderr
    assert summary(folder)["state"] == "finished"


def test_a_full_disk_under_a_sweep_of_jobs_is_one_sentence_per_run(disk):
    """The jobs cannot even write that they failed. The same code runs on Slurm."""
    pytest.importorskip("submitit")
    few = ("train", "-m", *ENDLESS, "hydra/launcher=slurm_local", "seed=0,1")
    sweep = subprocess.Popen([CFN, *few], cwd=disk, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while len({path.parent for path in disk.rglob("step_*.json")}) < 2:
        assert sweep.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    filler = fill(disk)
    _, errors = sweep.communicate(timeout=300)
    assert sweep.returncode == 1
    assert "Traceback" not in errors
    first, second, last = errors.splitlines()
    for line in (first, second):
        assert re.search("its disk is full: free some space, then cfn resume outputs/sweeps/[^ ]+ continues", line)
    assert last == "cfn: 2 of 2 runs of the sweep failed; the reasons are above"
    done = subprocess.run([CFN, *few], cwd=disk, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    filler.unlink()
    (record,) = (disk / "outputs" / "sweeps").glob("*.yaml")
    listed = subprocess.run([CFN, "runs", str(record)], cwd=disk, capture_output=True, text=True, timeout=300)
    assert listed.stdout.count("killed") == 2
    done = subprocess.run([CFN, "resume", str(record), "steps=60"], cwd=disk, capture_output=True, text=True)
    assert "2 to continue, 0 to start." in done.stdout


def test_a_folder_that_cannot_be_written_to_is_told(cfn, original, disk):
    folder = shutil.copytree(original.folder, disk / "run")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for command in (("resume", str(folder), "steps=200"), ("train", *ENDLESS, f"hydra.run.dir={disk}/other")):
        done = cfn(*command)
        assert done.returncode == 1
        assert "Read-only file system" in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_damaged_checkpoint_is_told_and_the_one_before_is_used(tmp_path, monkeypatch, caplog):
    whole, training = claimed(tmp_path / "whole", *SHORT)
    training.run(whole)
    run = broken_off(tmp_path / "run", 75, monkeypatch, *SHORT)
    newest = Checkpoints(run.files.checkpoints).paths[-1]
    newest.with_suffix(".bin").write_bytes(newest.with_suffix(".bin").read_bytes()[:-1])
    assert resumed(run, monkeypatch) == rows(whole.folder)
    assert "step_000000000060.json is damaged" in caplog.text


def breaking(at, monkeypatch, environment=None):
    """Every environment, or only that one, breaks at these steps of its own."""
    step, taken = Gridworld.step, {}

    def fragile(env, action):
        taken[id(env)] = taken.get(id(env), 0) + 1
        if taken[id(env)] in at and environment in (None, list(taken).index(id(env))):
            raise RuntimeError("the physics broke")
        return step(env, action)

    monkeypatch.setattr(Gridworld, "step", fragile)


def test_an_environment_that_breaks_stops_the_run_with_a_checkpoint(tmp_path, monkeypatch, caplog):
    run, training = claimed(tmp_path, *SHORT, "num_envs=4")
    with monkeypatch.context() as patch:
        breaking({7}, patch, environment=2)
        with pytest.raises(
            UsageError, match=r"environment 2 of 4 failed in step\(\) \(RuntimeError: the physics broke\)"
        ):
            training.run(run)
    assert Checkpoints(run.files.checkpoints).latest().step == 28, (
        "the step is done, the other three have learned from it"
    )
    assert run.recorded_state == "failed"
    assert resumed(run, monkeypatch)[-1]["step"] == 100


def test_an_environment_that_breaks_can_be_reset(tmp_path, monkeypatch, caplog):
    run, training = claimed(tmp_path, *SHORT, "num_envs=4", "env.on_error=reset")
    breaking({7}, monkeypatch, environment=2)
    training.run(run)
    assert rows(tmp_path)[-1]["train/failures"] == 1
    assert "Environment 2 of 4 failed in step() (RuntimeError: the physics broke)" in caplog.text


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((np.zeros((14, 14), np.uint8), float("nan")), "its reward is nan"),
        ((np.full((14, 14), np.inf), 0.0), "its observation holds NaN or infinity"),
    ],
    ids=["reward", "observation"],
)
def test_what_is_no_number_is_the_environments_fault_and_in_no_memory(tmp_path, monkeypatch, answer, sentence):
    run, training = claimed(tmp_path, *SHORT)
    step = Gridworld.step

    def odd(env, action):
        _, _, *rest = step(env, action)
        return (*answer, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Gridworld, "step", odd)
        with pytest.raises(UsageError, match=rf"environment 0 of 1 failed in step\(\) \(ValueError: {sentence}\)"):
            training.run(run)
    assert resumed(run, monkeypatch)[-1]["step"] == 100


def resets_failing(monkeypatch, failing):
    """Resets of the environment fail while `failing` says so of their number, counted from now on."""
    reset, taken = Gridworld.reset, []

    def fragile(env, **keys):
        taken.append(1)
        if failing(len(taken)):
            raise RuntimeError("the level is gone")
        return reset(env, **keys)

    monkeypatch.setattr(Gridworld, "reset", fragile)


BRIEF = (*GRID, *SMALL_CFN, "env.max_steps=15", "steps=100", "eval.every=90", "checkpoint.every=60")


@pytest.mark.parametrize(("failing", "step"), [((1,), 16), (range(1, 50), 15)], ids=["once", "always"])
def test_an_episode_that_cannot_be_begun_stops_the_run_with_a_checkpoint(tmp_path, monkeypatch, failing, step):
    run, training = claimed(tmp_path, *BRIEF)
    with monkeypatch.context() as patch:
        resets_failing(patch, failing.__contains__)
        sentence = (
            r"^environment 0 of 1 failed in reset\(\) \(RuntimeError: the level is gone\): "
            "cfn resume .* continues from here, with a new instance of that environment$"
        )
        with pytest.raises(UsageError, match=sentence):
            training.run(run)
    assert Checkpoints(run.files.checkpoints).latest().step == step
    assert resumed(run, monkeypatch)[-1]["step"] == 100


@pytest.mark.parametrize("call", ["reset", "step"])
@pytest.mark.parametrize("on_error", ["stop", "reset"])
@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
def test_an_evaluation_whose_environment_breaks(tmp_path, monkeypatch, caplog, call, on_error, times):
    """It is played once more; then the run stops with a checkpoint, or goes on."""
    run, training = claimed(tmp_path, *SHORT, f"env.on_error={on_error}")
    original, left = getattr(Gridworld, call), times

    def fragile(env, *arguments, **keys):
        nonlocal left
        if (
            left
            and training.step == 50
            and env.unwrapped not in (e.unwrapped for e in training.envs.copies.envs.values())
        ):
            left -= 1
            raise RuntimeError("the display is gone")
        return original(env, *arguments, **keys)

    monkeypatch.setattr(Gridworld, call, fragile)
    sentence = rf"environment 0 of an evaluation failed in {call}\(\) \(RuntimeError: the display is gone\)"
    if on_error == "stop":
        with pytest.raises(UsageError, match=rf"^{sentence}: cfn resume .* continues from here"):
            training.run(run)
        assert Checkpoints(run.files.checkpoints).latest().step == 50
        assert resumed(run, monkeypatch)[-1]["step"] == 100
    else:
        training.run(run)
    (row,) = [row for row in rows(tmp_path) if row["step"] == 50]
    assert ("eval/return" in row) == (times == 1)
    assert "explore/states" in row, "the bonus is asked all the same"
    assert "eval/return" in rows(tmp_path)[-1]
    assert re.search(sentence[1:], caplog.text)


def test_without_checkpoints_nobody_is_told_to_resume(tmp_path, monkeypatch):
    run, training = claimed(tmp_path, *SHORT, "checkpoint.every=null")
    breaking({7}, monkeypatch)
    with pytest.raises(
        UsageError, match=r"^environment 0 of 1 failed in step\(\) \(RuntimeError: the physics broke\)$"
    ):
        training.run(run)


def test_a_loss_on_a_device_that_is_not_a_number_is_not_saved(tmp_path, monkeypatch):
    """It is looked at before a checkpoint is written, though nothing has been logged since."""
    pretend_gpu(monkeypatch)
    run, training = claimed(tmp_path, *SHORT)
    update = training.bonus.update
    broken = {"bonus/loss": torch.tensor(float("nan"))}
    training.bonus.update = lambda: broken if training.step == 55 else update()
    with pytest.raises(UsageError, match=r"bonus/loss is nan at step 60"):
        training.run(run)
    assert Checkpoints(run.files.checkpoints).latest().step == 40


def test_a_loss_that_is_not_a_number_leaves_the_last_checkpoint_good(tmp_path, monkeypatch):
    run, training = claimed(tmp_path, *SHORT)
    update = training.bonus.update
    training.bonus.update = lambda: {"bonus/loss": np.nan} if training.step == 75 else update()
    with pytest.raises(UsageError, match=r"bonus/loss is nan at step 75"):
        training.run(run)
    assert Checkpoints(run.files.checkpoints).latest().step == 60
    assert resumed(run, monkeypatch)[-1]["step"] == 100, "and what made it so may be over"


MALICIOUS = "raise SystemExit('the malicious code ran')"


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return exec, (MALICIOUS,)


@pytest.mark.parametrize("where", ["json", "bin", "chunk"])
def test_a_pickle_in_a_checkpoint_is_never_opened(tmp_path, monkeypatch, where):
    run = broken_off(tmp_path, 75, monkeypatch, *SHORT)
    shutil.copy(Checkpoints(run.files.checkpoints).paths[-1], tmp_path / "good")
    for path in Checkpoints(run.files.checkpoints).paths:
        target = {"json": path, "bin": path.with_suffix(".bin"), "chunk": run.files.checkpoints / "chunks" / "bomb"}[
            where
        ]
        target.write_bytes(pickle.dumps(Bomb()))
    if where == "chunk":  # which nothing names: it is only removed
        assert resumed(run, monkeypatch)[-1]["step"] == 100
    else:
        with pytest.raises(UsageError, match="has no usable checkpoint"):
            resumed(run, monkeypatch)


@pytest.mark.parametrize(
    ("key", "value", "imported"),
    [
        ("bonus._target_", "os.system", "os.system"),
        ("agent._target_", "cfn.seeding.torch.hub.load", "cfn.seeding.torch.hub.load"),
        ("env._target_", "bomb.Env", "bomb.Env"),
        ("bonus._target_", "cfn.envs.generic.make", "cfn.envs.generic.make"),
        ("tracker._target_", ["os.system"], r"\['os.system'\]"),
        ("env.id", "bomb:Env-v0", "bomb"),
        ("tracker._target_", None, "None"),
    ],
)
def test_a_strangers_config_imports_nothing(ended, tmp_path, monkeypatch, key, value, imported):
    run = ended
    (tmp_path / "bomb.py").write_text(MALICIOUS)
    monkeypatch.syspath_prepend(str(tmp_path))
    group, name = key.split(".")
    run.config[group][name] = value
    run.write_config()
    with pytest.raises(UsageError, match=rf"{key}={imported} is not part of this package"):
        resumed(run, monkeypatch, "steps=200")
    assert "bomb" not in sys.modules


def test_a_strangers_yaml_makes_no_objects(ended):
    (ended.folder / ".hydra/config.yaml").write_text(f'steps: !!python/object/apply:builtins.exec ["{MALICIOUS}"]\n')
    with pytest.raises(UsageError, match="cannot be read"):
        Run.open(ended.folder)


def test_interpolations_in_a_strangers_config_are_not_followed(ended, monkeypatch):
    monkeypatch.setenv("SECRET", "7")
    ended.config["seed"] = "${oc.env:SECRET}"
    with pytest.raises(UsageError, match=r"seed=\$\{oc.env:SECRET\}: should be a valid integer"):
        config_of(ended)


def test_what_the_user_trusts_is_imported(ended, tmp_path, monkeypatch):
    run = ended
    (tmp_path / "trusted_bonus.py").write_text(
        "from cfn.bonuses.coin_flip import CoinFlipBonus\n\n\nclass Mine(CoinFlipBonus):\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    run.config["bonus"]["_target_"] = "trusted_bonus.Mine"
    run.write_config()
    with pytest.raises(UsageError, match=r"add --trust trusted_bonus\.Mine"):
        config_of(run)
    assert config_of(run, ["trusted_bonus.Mine"]).bonus.target.__name__ == "Mine"


@pytest.mark.parametrize("name", ["lock", "summary.json.new", "checkpoints/chunks", "plots/trap.png", "wandb/settings"])
def test_a_strangers_links_lead_nowhere(ended, tmp_path, monkeypatch, name):
    run = ended
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "file").write_text("precious")
    trap = run.folder / name
    trap.parent.mkdir(exist_ok=True)
    if trap.is_dir():
        shutil.rmtree(trap)
    trap.unlink(missing_ok=True)
    trap.symlink_to(treasure if name == "checkpoints/chunks" else treasure / "file")
    with pytest.raises(UsageError, match="is a link out of the run folder"):
        resumed(run, monkeypatch, "steps=200")
    assert (treasure / "file").read_text() == "precious"
    trap.unlink()
    if name == "wandb/settings":
        trap.write_text("[default]\nbase_url = http://127.0.0.1:9\n")
        with pytest.raises(UsageError, match="could redirect what W&B uploads"):
            resumed(run, monkeypatch, "steps=200")


@pytest.mark.parametrize(
    ("key", "value"), [("env", [1]), ("eval", 3), ("agent", None), ("checkpoint", "often")], ids=str
)
def test_a_config_of_another_shape_is_a_sentence(ended, monkeypatch, key, value):
    run = ended
    run.config[key] = value
    run.write_config()
    with pytest.raises(UsageError):
        resumed(run, monkeypatch, "steps=200")


def test_a_strangers_pipe_is_not_waited_for(ended, monkeypatch):
    os.mkfifo(ended.files.checkpoints / "step_000000009999.json")
    with pytest.raises(UsageError, match="is neither a file nor a folder"):
        resumed(ended, monkeypatch, "steps=200")


def test_a_strangers_names_are_shown_and_not_obeyed(ended):
    summary = json.loads((ended.folder / "summary.json").read_text())
    (ended.folder / "summary.json").write_text(json.dumps(summary | {"setting": "\x1b]0;a title\x07"}))
    assert Run.open(ended.folder).setting == "?]0;a title?"
    (ended.folder / "summary.json").write_text(json.dumps(summary | {"seed": -1}))
    with pytest.raises(UsageError, match=r"summary\.json or the config has an unexpected format"):
        Run.open(ended.folder)


def test_a_checkpoint_is_of_the_step_that_it_is_called_by(tmp_path, monkeypatch, caplog):
    run = broken_off(tmp_path, 75, monkeypatch, *SHORT)
    newest = Checkpoints(run.files.checkpoints).paths[-1]
    manifest = from_hashed_json(newest.read_bytes())
    newest.write_bytes(to_hashed_json(manifest | {"step": -5}))
    assert resumed(run, monkeypatch)[-1]["step"] == 100
    assert f"{newest.name} is damaged (it holds step -5)" in caplog.text


def test_stray_files_are_left_alone(tmp_path, monkeypatch):
    run = broken_off(tmp_path, 75, monkeypatch, *SHORT)
    for stray in (run.files.checkpoints / "step_x.json", run.files.counts / "step_50 copy.csv"):
        stray.write_text("mine")
    assert resumed(run, monkeypatch)[-1]["step"] == 100
    assert (run.files.counts / "step_50 copy.csv").exists()


def test_a_damaged_line_of_metrics_is_a_sentence(tmp_path, monkeypatch):
    run = broken_off(tmp_path, 75, monkeypatch, *SHORT)
    run.files.metrics.write_text("x" + run.files.metrics.read_text()[1:])
    with pytest.raises(UsageError, match="has a line that is not a JSON object"):
        resumed(run, monkeypatch)


def test_a_checkpoint_that_cannot_be_read_now_is_not_thrown_away(tmp_path, monkeypatch):
    """Another time it can be: an older one must not take its place, nor the metrics be cut."""
    run = broken_off(tmp_path, 75, monkeypatch, *SHORT)
    files = {path: path.read_bytes() for path in (run.files.metrics, *run.files.checkpoints.glob("step_*"))}
    read, newest = Path.read_bytes, Checkpoints(run.files.checkpoints).paths[-1]

    def failing(path):
        if path == newest.with_suffix(".bin"):
            raise OSError(errno.EIO, "Input/output error")
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", failing)
        with pytest.raises(UsageError, match=r"step_000000000060\.json cannot be read \(Input/output error\)"):
            resumed(run, monkeypatch)
    assert {path: path.read_bytes() for path in files} == files


BEYOND = {
    "optimiser": (
        lambda parts: parts["agent"]["optimizer"]["state"][0].update(exp_avg=torch.zeros(1)),
        "exp_avg of optimiser parameter 0 does not have the shape",
    ),
    "generator": (
        lambda parts: parts["loop"]["generators"]["numpy"]["state"].update(pos=10**9),
        "invalid state of NumPy's generator",
    ),
    "batch": (
        lambda parts: parts["agent"]["memory"].update(batches=[np.array([500])] * 7 + [1]),
        "a saved batch has entries of",
    ),
    "step": (lambda parts: parts["loop"].update(step=7), "its numbers contradict each other"),
    "metrics": (lambda parts: parts["written"].update(metrics=-1), "its numbers contradict each other"),
    "means": (lambda parts: parts["loop"]["means"].update(sums={"a": "x"}), "could not convert string to float"),
    "digests": (
        lambda parts: parts["frames"]["index"].update(digests=parts["frames"]["index"]["digests"][:, :1]),
        "content hashes of frames are not pairs of 64-bit integers",
    ),
}


@pytest.mark.parametrize(("alter", "sentence"), BEYOND.values(), ids=BEYOND)
def test_a_strangers_state_reaches_no_memory_but_its_own(tmp_path, monkeypatch, alter, sentence):
    run = broken_off(tmp_path, 75, monkeypatch, *SHORT)
    saved = Checkpoints(run.files.checkpoints).latest()
    parts = {name: saved.read(name) for name in saved._parts}
    alter(parts)
    Checkpoints(run.files.checkpoints).save(saved.step, parts)
    with pytest.raises(UsageError, match=rf"does not fit this run \(ValueError: {sentence}"):
        resumed(run, monkeypatch)
