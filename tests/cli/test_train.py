"""`cfn train`, within this process."""

import json
import re
from pathlib import Path

import pytest
import yaml
from metrics import rows

WATCH = ("agent=random", "bonus=count")  # nothing that learns
SMALL = (*WATCH, "env.size=7", "env.image_size=14", "steps=300", "eval.every=150", "tracker=none", "pictures=false")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["env=nosuch"], "env=nosuch: there is no such option; choose from antmaze, atari, deep_sea, door"),
        (
            ["env.sizee=3"],
            "env.sizee is not a key (did you mean env.size?): the keys of env=gridworld_small are action_noise, ",
        ),
        (["env.size=abc"], "env.size=abc: should be a valid integer"),
        (
            ["env.size=5"],
            "env.size: an image of 21 pixels cannot be divided into 5 equal cells: choose a size from 3, 7",
        ),
        (["steps=-1"], "steps=-1: should be greater than or equal to 1"),
        (["num_envs=0"], "num_envs=0: should be greater than or equal to 1"),
        (["num_envs=99999"], "num_envs=99999: should be at most steps=10000"),
        (["threads=100000"], "threads=100000: should be less than or equal to 1024"),
        (["device=cuda"], "device=cuda: PyTorch finds no such device on this machine: use device=auto"),
        (["outputs=taken/runs"], "Not a directory: choose a writable folder with outputs=DIR"),
        (["hydra.run.dir=/proc/nowhere"], "/proc/nowhere: No such file or directory"),
        (["bonus.d=0"], "bonus.d=0: should be greater than or equal to 1"),
        (
            ["env=montezuma", "env.max_steps=600000000"],
            "env.max_steps=600000000: should be less than or equal to 536870911",
        ),
        (["bonus.alpha=2"], "bonus.alpha=2: should be less than or equal to 1"),
        (["bonus.capacity=50"], "bonus.capacity: 50 states cannot fill a batch"),
        (["bonus.flips=dice"], "bonus.flips=dice: should be 'rademacher', 'balanced', 'gaussian' or 'zero'"),
        (["bonus=pixelcnn", "env=gym", "env.id=CartPole-v1"], "use bonus=cfn or bonus=rnd"),
        (["env=gym", "env.id=Pendulum-v1", "agent=rainbow"], "use agent=sac"),
        (["env=fetch_push", "env.mode=odd"], "env.mode=odd: should be 'default', 'easy', 'medium' or 'hard'"),
        (
            ["agent=sac"],
            "agent=sac needs continuous actions (vectors), and this environment has Discrete(4): use agent=rainbow",
        ),
        (["agent.atoms=1"], "agent.atoms=1: should be greater than or equal to 2"),
        (["agent.vmin=11"], "agent.vmin: 11.0 is not below vmax=1.2"),
        (["agent.vmin=-inf"], "agent.vmin=-inf: should be a finite number"),
        (["agent.channels=[1,2]"], "agent.channels=[1, 2]: should have at least 3 items, not 2"),
        (["agent.n_step=0"], "agent.n_step=0: should be greater than or equal to 1"),
        ([f"agent.capacity={10**13}"], "agent.capacity: 10,000,000,000,000 entries can grow to"),
        ([f"bonus.capacity={10**13}"], "bonus.capacity: 10,000,000,000,000 entries can grow to"),
        (["env=gym", "env.id=CartPole-v1", "frame_stack=4"], "frame_stack=4 needs grey images"),
        (["eval=5"], "eval=5: should be a group of keys"),
        (["--config-dir", "broken", "env=mine"], "a config file cannot be read"),
        (["tracker.project=a/b"], "tracker.project=a/b: "),
        (["env=gym", "env.id=NoSuch-v0"], "env.id: Gymnasium has no environment 'NoSuch-v0'"),
        (["env=gym"], "cfn: env.id is not set and has no default: add env.id=... to the command"),
        (
            ["env.id=CartPole-v1"],
            "on_error, size; it is a key of env=gym, env=minigrid",
        ),
        (["env=ALE/Pong-v5"], "env=ALE/Pong-v5: there is no such option; choose from antmaze"),
        (["env=CartPole-v1"], "taxi5; an id of Gymnasium is written env=gym env.id=CartPole-v1"),
        (["eval.every=0"], "eval.every=0: should be greater than or equal to 1, or null"),
        (["bonus.scale=high"], "bonus.scale=high: should be a valid number\n"),
        (
            ["--config-dir", "another", "bonus=another"],
            "bonus=another is a Fraction: it must be derived from cfn.bonuses.base",
        ),
        (
            ["--config-dir", "another", "env=another"],
            "env=another is a Fraction: it must be derived from gymnasium.core.Env",
        ),
        (["env=gym", "env.id=CartPole-v1", "bonus=count"], "bonus=count counts true states"),
        (["preset=mini"], "preset=mini needs an experiment"),
        (["stepz=3"], "stepz is not a key (did you mean steps?)"),
        (["env=["], "env=[: this is not of the form key=value (a value with spaces, commas or brackets needs quotes"),
        (["outputs='${y}'"], "hydra.run.dir: Interpolation key 'y' not found"),
        (["+env.colour=red"], "env.colour is not a key"),
        (["++env.colour=red"], "env.colour is not a key"),
        (["env.colour.shade=red"], "env.colour is not a key"),
        (["+env.size=7"], "+env.size: this key exists already: leave out the +"),
        (["~env.colour"], "Could not delete from config. 'env.colour' does not exist."),
        (["seed=0,1"], "seed=0,1: several values are a sweep: add -m (a list is written seed=[0,1])"),
        (["bonus=none", "bonus.scale=1"], "bonus.scale is not a key: bonus=none has no keys"),
        (["env=gym", "env.id=CartPole-v1", "agent.atomz=2"], "agent.atomz is not a key (did you mean agent.atoms?)"),
        (["--config-dir", "nowhere"], "nowhere' not found"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_gets_a_sentence_and_leaves_nothing(call, tmp_path, arguments, message):
    (tmp_path / "taken").write_text("a file where a folder should be")
    (tmp_path / "broken" / "env").mkdir(parents=True)
    (tmp_path / "broken" / "env" / "mine.yaml").write_text("_target_: [")
    for group in ("bonus", "env"):
        (tmp_path / "another" / group).mkdir(parents=True)
        (tmp_path / "another" / group / "another.yaml").write_text("_target_: fractions.Fraction\n")
    before = set(tmp_path.rglob("*"))
    done = call("train", *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert set(tmp_path.rglob("*")) - before <= {tmp_path / "outputs"}
    assert before <= set(tmp_path.rglob("*"))


def test_a_refused_run_removes_nobodys_folders(call, tmp_path):
    (tmp_path / "here").mkdir()
    assert call("train", "env.size=5", "hydra.run.dir=here", "tracker=none").returncode == 1
    assert (tmp_path / "here").is_dir()


def test_a_run_interrupted_before_it_starts_leaves_no_folder(call, tmp_path, monkeypatch):
    def interrupt(training, config):
        raise KeyboardInterrupt

    monkeypatch.setattr("cfn.training.loop.Training.__init__", interrupt)
    done = call("train", *SMALL)
    assert (done.returncode, done.stderr) == (130, "cfn: stopped\n")
    assert list((tmp_path / "outputs").iterdir()) == []


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_run_and_another_seed_another(call, tmp_path):
    for folder, seed in [("a", 3), ("b", 3), ("c", 4)]:
        done = call("train", *SMALL, f"seed={seed}", "env.action_noise=0.3", f"hydra.run.dir={folder}")
        assert done.returncode == 0, done.stderr
    lines = {f: (tmp_path / f / "metrics.jsonl").read_text() for f in "abc"}
    timeless = {f: re.sub(r', "speed/[^,}]*', "", text) for f, text in lines.items()}
    assert timeless["a"] == timeless["b"] != timeless["c"]
    counts = {f: (tmp_path / f / "counts/step_000000300.csv").read_bytes() for f in "abc"}
    assert counts["a"] == counts["b"] != counts["c"]


@pytest.mark.slow
@pytest.mark.parametrize("bonus", ["cfn", "rnd", "pixelcnn"])
def test_a_learning_bonus_gives_the_same_run_too(call, tmp_path, bonus):
    own = ["bonus.batch_size=32", "bonus.min_size=50"] if bonus == "cfn" else []
    for folder in "ab":
        done = call("train", *SMALL, f"bonus={bonus}", *own, f"hydra.run.dir={folder}")
        assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "a") == rows(tmp_path / "b")


@pytest.mark.thorough
def test_any_gymnasium_environment_trains(call, run_folders):
    done = call("train", "env=gym", "env.id=CartPole-v1", "steps=300", "eval.every=150", "num_envs=3")
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert folder.parts[-4:-2] == ("CartPole-v1", "rainbow-none")
    assert any("train/return" in row for row in rows(folder))
    assert not any("bonus/mse" in row for row in rows(folder)), "no true states, nothing to compare with"
    assert sorted(path.name for path in (folder / "plots").iterdir()) == ["learning_curve.png"]


@pytest.mark.thorough
def test_continuous_actions_train_with_a_bonus(call, run_folders):
    short = ("steps=400", "eval.every=400", "eval.episodes=1", "agent.min_size=200", "bonus.min_size=200")
    done = call(
        "train", "env=gym", "env.id=Pendulum-v1", "env.bin=0.5", "agent=sac", "bonus=cfn", "tracker=none",
        "pictures=false", "num_envs=2", "agent.batch_size=32", "agent.hidden=[16]", "bonus.batch_size=64", *short,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert folder.parts[-4:-2] == ("Pendulum-v1", "sac-cfn")
    names = {name for row in rows(folder) for name in row}
    assert {"agent/loss", "agent/temperature", "bonus/loss", "bonus/mse", "train/return"} <= names


@pytest.mark.thorough
@pytest.mark.parametrize("bonus", ["cfn", "rnd", "pixelcnn"])
def test_a_learning_bonus_is_held_against_the_truth(call, run_folders, bonus):
    own = ["bonus.batch_size=32", "bonus.min_size=50"] if bonus == "cfn" else []
    done = call("train", *SMALL, f"bonus={bonus}", *own, "threads=1", "pictures=true")
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    last = rows(folder)[-1]
    assert last["bonus/mse"] >= last["bonus/affine_mse"]
    assert any("bonus/loss" in row for row in rows(folder))
    assert ("bonus/floor_mse" in last) == (folder / "plots" / "count_error.png").exists() == (bonus == "cfn")


@pytest.mark.thorough
@pytest.mark.parametrize("own", [["frame_stack=3", "num_envs=2"], ["agent.noisy=true", "agent.dueling=true"]])
def test_rainbow_trains_and_gives_the_same_run(call, tmp_path, own):
    keys = ["agent=rainbow", "agent.min_size=50", "bonus=cfn", "bonus.batch_size=32", "bonus.min_size=50", *own]
    keys += ["agent.channels=[4,8,8]", "agent.hidden=[16]", "bonus.channels=[4,8,8]", "steps=200", "eval.every=100"]
    for folder in "ab":
        done = call("train", *SMALL, *keys, f"hydra.run.dir={folder}", "threads=1")
        assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    assert any("agent/loss" in row for row in rows(tmp_path / "a"))


def test_hydra_shows_the_config_wherever_its_flags_stand(call, tmp_path):
    (tmp_path / "my_conf" / "env").mkdir(parents=True)
    (tmp_path / "my_conf" / "env" / "mine.yaml").write_text("defaults:\n  - gridworld\n  - _self_\nsize: 14\n")
    flags = ("--cfg", "job", "--resolve", "--config-dir", "my_conf")
    for arguments in (["env=mine", "seed=3", *flags], [*flags, "env=mine", "seed=3"], ["env=mine", *flags, "seed=3"]):
        shown = yaml.safe_load(call("train", *arguments).stdout)
        assert (shown["steps"], shown["env"]["size"], shown["seed"]) == (250_000, 14, 3)


MY_BONUS = """
import numpy as np
from cfn.bonuses.base import Bonus

class Constant(Bonus):
    def __init__(self, observation_space, seed=0, value: float = 1.0, power: int = 1):  # the YAML does not list power
        self.value = value**power
    def observe(self, observations, visits=None):
        return self.novelty(observations)
    def novelty(self, observations, states=None):
        return np.full(len(observations), self.value)
"""


@pytest.mark.thorough
def test_a_users_own_bonus_needs_one_file_and_one_yaml(call, tmp_path, run_folders, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine.py").write_text(MY_BONUS)
    (tmp_path / "my_conf" / "bonus").mkdir(parents=True)
    (tmp_path / "my_conf" / "bonus" / "constant.yaml").write_text("_target_: mine.Constant\nvalue: 0.25\n")
    own = ("--config-dir", "my_conf", *SMALL, "bonus=constant")
    done = call("train", *own, "bonus.power=2")
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert folder.parts[-3] == "random-constant"
    assert {row["train/bonus"] for row in rows(folder) if "train/bonus" in row} == {0.0625}
    assert yaml.safe_load((folder / ".hydra" / "overrides.yaml").read_text())[-1] == "bonus.power=2"
    assert json.loads((folder / "summary.json").read_text())["setting"].count(" bonus.power=2 ") == 1
    assert "bonus.value=much: should be a valid number" in call("train", *own, "bonus.value=much").stderr
    assert "bonus.powr is not a key (did you mean bonus.power?)" in call("train", *own, "bonus.powr=2").stderr


def test_a_failure_in_the_middle_is_written_down(call, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine.py").write_text(
        MY_BONUS + "    def update(self):\n        raise RuntimeError('the bonus broke')\n"
    )
    (tmp_path / "my_conf" / "bonus").mkdir(parents=True)
    (tmp_path / "my_conf" / "bonus" / "constant.yaml").write_text("_target_: mine.Constant\n")
    done = call("train", "--config-dir", "my_conf", *SMALL, "bonus=constant", "hydra.run.dir=here")
    assert done.returncode == 1
    assert "the bonus broke (mine.py, line" in done.stderr
    assert "HYDRA_FULL_ERROR=1" in done.stderr
    assert "Traceback" not in done.stderr
    summary = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert summary["state"] == "failed"
    assert summary["error"] == "RuntimeError: the bonus broke"
    assert "Traceback" in Path(tmp_path / "here" / "train.log").read_text(), "where whoever mends it will look"
