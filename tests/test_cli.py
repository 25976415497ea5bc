"""The commands, as commands."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest
import yaml
from command import CFN
from metrics import rows

import cfn as package

WATCH = ("agent=random", "bonus=count")  # nothing that learns
SMALL = (*WATCH, "env.size=7", "env.image_size=14", "steps=300", "eval.every=150", "tracker=none")


def test_alone_or_with_a_wrong_word_it_names_the_commands(cfn):
    for arguments, code in [((), 2), (("--help",), 0)]:
        done = cfn(*arguments)
        assert done.returncode == code
        assert "cfn train [key=value ...]" in done.stdout + done.stderr
    done = cfn("trian")
    assert done.returncode == 2
    sentence = "there is no command 'trian': choose from train, resume, eval, plot, runs, report (cfn --help says more)"
    assert done.stderr == f"cfn: {sentence}\n"


def test_the_version(cfn):
    assert cfn("--version").stdout == f"cfn {package.__version__}\n"


def test_what_a_run_leaves(cfn, tmp_path, run_folders):
    done = cfn("train", *SMALL, "seed=4")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    (folder,) = run_folders()
    pattern = r"outputs/gridworld_small/random-count/\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d/seed=4"
    assert re.fullmatch(pattern, str(folder.relative_to(tmp_path)))
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {
        ".hydra/config.yaml",
        ".hydra/hydra.yaml",
        ".hydra/overrides.yaml",
        "metrics.jsonl",
        "counts/step_000000150.csv",
        "counts/step_000000300.csv",
        "plots/learning_curve.png",
        "plots/scatter.png",
        "plots/maps.png",
        "checkpoints/step_000000000300.bin",
        "checkpoints/step_000000000300.json",
        "lock",
        "train.log",
        "summary.json",
    }
    assert yaml.safe_load((folder / ".hydra/overrides.yaml").read_text()) == [*SMALL, "seed=4"]
    assert yaml.safe_load((folder / ".hydra/config.yaml").read_text())["env"]["size"] == 7
    assert yaml.safe_load((folder / ".hydra/hydra.yaml").read_text())["hydra"]["job"]["name"] == "train"
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["state"], summary["steps"], summary["seed"]) == ("finished", 300, 4)
    assert "finished after" in (folder / "train.log").read_text()
    names = {name for row in rows(folder, times=True) for name in row}
    assert names >= {
        "step", "train/return", "train/length", "train/bonus", "eval/return", "bonus/mse", "bonus/affine_mse",
        "bonus/spearman", "explore/states", "speed/steps_per_second",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["env=nosuch"], "env=nosuch: there is no such option; choose from antmaze, atari, door"),
        (["env.sizee=3"], "env.sizee is not a key (did you mean env.size?): the keys of env are action_noise"),
        (["env.size=abc"], "env.size=abc: should be a valid integer"),
        (
            ["env.size=5"],
            "env.size: the image of 21 pixels cannot be cut into 5 equal cells: choose a size out of 3, 7",
        ),
        (["steps=-1"], "steps=-1: should be greater than or equal to 1"),
        (["num_envs=0"], "num_envs=0: should be greater than or equal to 1"),
        (["num_envs=99999"], "num_envs=99999: should be at most steps=10000"),
        (["threads=100000"], "threads=100000: should be less than or equal to 1024"),
        (["device=cuda"], "device=cuda: PyTorch finds no such device on this machine: use device=auto"),
        (["outputs=taken/runs"], "Not a directory: choose a folder that can be written to with outputs=DIR"),
        (["hydra.run.dir=/proc/nowhere"], "/proc/nowhere: No such file or directory"),
        (["bonus.d=0"], "bonus.d=0: should be greater than or equal to 1"),
        (
            ["env=montezuma", "env.max_steps=600000000"],
            "env.max_steps=600000000: should be less than or equal to 536870911",
        ),
        (["bonus.alpha=2"], "bonus.alpha=2: should be less than or equal to 1"),
        (["bonus.capacity=50"], "bonus.capacity: 50 states cannot fill a batch"),
        (["bonus.flips=dice"], "bonus.flips=dice: should be 'rademacher', 'gaussian' or 'zero'"),
        (["bonus=pixelcnn", "env=gym", "env.id=CartPole-v1"], "use bonus=cfn or bonus=rnd"),
        (["env=gym", "env.id=Pendulum-v1"], "use agent=sac"),
        (["env=fetch_push", "env.mode=odd"], "env.mode=odd: should be 'default', 'easy', 'medium' or 'hard'"),
        (["agent=sac"], "agent=sac chooses continuous actions, not from Discrete(4): use agent=rainbow"),
        (["agent.atoms=1"], "agent.atoms=1: should be greater than or equal to 2"),
        (["agent.vmin=11"], "agent.vmin: 11.0 is not below vmax=2.0"),
        (["agent.vmin=-inf"], "agent.vmin=-inf: should be a finite number"),
        (["agent.channels=[1,2]"], "agent.channels=[1, 2]: should have at least 3 items, not 2"),
        (["agent.n_step=0"], "agent.n_step=0: should be greater than or equal to 1"),
        ([f"agent.capacity={10**13}"], "agent.capacity: 10,000,000,000,000 entries can grow to"),
        ([f"bonus.capacity={10**13}"], "bonus.capacity: 10,000,000,000,000 entries can grow to"),
        (["env=gym", "env.id=CartPole-v1", "frame_stack=4"], "frame_stack=4 stacks grey images"),
        (["eval=5"], "eval=5: should be a group of keys"),
        (["--config-dir", "broken", "env=mine"], "a config file cannot be read"),
        (["tracker.project=a/b"], "tracker.project=a/b: "),
        (["env=gym", "env.id=NoSuch-v0"], "env.id: Gymnasium knows no environment 'NoSuch-v0'"),
        (["env=gym"], "env.id is not set and has no default"),
        (["env=gym", "env.id=CartPole-v1", "bonus=count"], "bonus=count counts true states"),
        (["preset=mini"], "preset=mini belongs to an experiment"),
        (["stepz=3"], "stepz is not a key (did you mean steps?)"),
        (["env=["], "env=[: this is not of the form key=value (a value with spaces, commas or brackets needs quotes"),
        (["outputs='${y}'"], "hydra.run.dir: Interpolation key 'y' not found"),
        (["+env.colour=red"], "env.colour is not a key"),
        (["--config-dir", "nowhere"], "nowhere' not found"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_gets_a_sentence_and_leaves_nothing(cfn, tmp_path, arguments, message):
    (tmp_path / "taken").write_text("a file where a folder should be")
    (tmp_path / "broken" / "env").mkdir(parents=True)
    (tmp_path / "broken" / "env" / "mine.yaml").write_text("_target_: [")
    before = set(tmp_path.rglob("*"))
    done = cfn("train", *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert set(tmp_path.rglob("*")) - before <= {tmp_path / "outputs"}
    assert before <= set(tmp_path.rglob("*"))


def test_the_traceback_is_there_for_those_who_ask(cfn):
    done = cfn("train", "env.size=5", HYDRA_FULL_ERROR="1")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "BadValueError" in done.stderr


def test_a_folder_that_holds_a_run_is_not_touched(cfn, tmp_path):
    first = cfn("train", *SMALL, "hydra.run.dir=here")
    assert first.returncode == 0, first.stderr
    before = {path: path.read_bytes() for path in (tmp_path / "here").rglob("*") if path.is_file()}
    second = cfn("train", *SMALL, "seed=1", "hydra.run.dir=here")
    assert second.returncode == 1
    assert "here holds a run already" in second.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "here").rglob("*") if path.is_file()} == before


def test_a_refused_run_removes_nobodys_folders(cfn, tmp_path):
    (tmp_path / "here").mkdir()
    assert cfn("train", "env.size=5", "hydra.run.dir=here", "tracker=none").returncode == 1
    assert (tmp_path / "here").is_dir()


def test_the_output_may_be_cut_short(tmp_path):
    for arguments in (" ".join(SMALL), "--help"):
        line = f"{CFN} train {arguments} | head -1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path, timeout=60)
        assert done.stderr == ""
        assert done.stdout.splitlines()[-1] == "0"


def test_the_same_seed_gives_the_same_run_and_another_seed_another(cfn, tmp_path):
    for folder, seed in [("a", 3), ("b", 3), ("c", 4)]:
        done = cfn("train", *SMALL, f"seed={seed}", "env.action_noise=0.3", f"hydra.run.dir={folder}")
        assert done.returncode == 0, done.stderr
    lines = {f: (tmp_path / f / "metrics.jsonl").read_text() for f in "abc"}
    timeless = {f: re.sub(r', "speed/[^,}]*', "", text) for f, text in lines.items()}
    assert timeless["a"] == timeless["b"] != timeless["c"]
    counts = {f: (tmp_path / f / "counts/step_000000300.csv").read_bytes() for f in "abc"}
    assert counts["a"] == counts["b"] != counts["c"]


@pytest.mark.slow
@pytest.mark.parametrize("bonus", ["cfn", "rnd", "pixelcnn"])
def test_a_learning_bonus_gives_the_same_run_too(cfn, tmp_path, bonus):
    own = ["bonus.batch_size=32", "bonus.min_size=50"] if bonus == "cfn" else []
    for folder in "ab":
        done = cfn("train", *SMALL, f"bonus={bonus}", *own, f"hydra.run.dir={folder}")
        assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "a") == rows(tmp_path / "b")


def test_a_sweep_makes_a_run_for_each(cfn, tmp_path, run_folders):
    done = cfn("train", "-m", *SMALL, "bonus=none,count", "seed=0,1")
    assert done.returncode == 0, done.stderr
    places = [folder.relative_to(tmp_path / "outputs").parts for folder in run_folders()]
    assert [(p[0], p[1], p[3]) for p in places] == [
        ("gridworld_small", f"random-{bonus}", f"seed={seed}") for bonus in ("count", "none") for seed in (0, 1)
    ]
    assert len({p[2] for p in places}) == 1, "one command, one moment: seeds sit side by side"


def test_a_broken_run_does_not_stop_the_others_and_the_exit_code_tells(cfn, run_folders):
    done = cfn("train", "-m", *WATCH, "env.size=5,7", "seed=0,1", "env.image_size=14", "steps=100", "tracker=none")
    assert done.returncode == 1
    assert done.stderr.count("failed: env.size: the image of 14 pixels") == 2
    assert "Traceback" not in done.stderr
    assert [folder.name for folder in run_folders()] == ["seed=0", "seed=1"]
    assert all(",env.size=7" in folder.parent.name for folder in run_folders())


def test_a_run_that_does_not_compose_does_not_stop_the_others(cfn, run_folders):
    done = cfn("train", "-m", *WATCH, "env=gridworld,nosuch", "seed=0,1", "steps=100", "tracker=none")
    assert done.returncode == 1
    assert done.stderr.count("env=nosuch: there is no such option") == 2
    assert "2 of 4 runs of the sweep failed" in done.stderr
    assert [folder.name for folder in run_folders()] == ["seed=0", "seed=1"]


def test_any_key_can_be_swept_and_the_folder_of_a_sweep_chosen(cfn, tmp_path, run_folders):
    done = cfn("train", *SMALL, "-m", "steps=100,200", "hydra.sweep.dir=mine")
    assert done.returncode == 0, done.stderr
    assert [folder.parent.name.partition(",")[2] for folder in run_folders()] == ["steps=100", "steps=200"]
    assert all(folder.is_relative_to(tmp_path / "mine") for folder in run_folders())


def test_a_sweep_can_be_spread_over_processes(cfn, run_folders):
    done = cfn("train", "-m", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "seed=0,1", *SMALL)
    assert done.returncode == 0, done.stderr
    assert [folder.name for folder in run_folders()] == ["seed=0", "seed=1"]
    assert len({folder.parent for folder in run_folders()}) == 1


def test_an_experiment_is_one_command(cfn, run_folders):
    done = cfn("train", "experiment=random_walk", "preset=mini", "steps=200", "tracker=none")
    assert done.returncode == 0, done.stderr
    assert [folder.name for folder in run_folders()] == ["seed=0", "seed=1", "seed=2"]


def test_an_experiment_ends_in_its_figure(cfn, tmp_path, run_folders):
    short = ("steps=60", "eval.every=30", "suite.rainbow.min_size=20", "suite.cfn.channels=[2,2,2]")
    done = cfn("train", "experiment=gridworld_curves", "preset=mini", "seed=0", "tracker=none", *short)
    assert done.returncode == 0, done.stderr
    assert [folder.parts[-4:-2] for folder in run_folders()] == [
        ("gridworld_small", f"rainbow-{bonus}") for bonus in ("cfn", "none", "pixelcnn", "rnd")
    ]
    (figure,) = (tmp_path / "outputs" / "sweeps").glob("*.png")
    assert f"The experiment's figure: outputs/sweeps/{figure.name}" in done.stdout


def test_any_gymnasium_environment_trains(cfn, run_folders):
    done = cfn("train", "env=gym", "env.id=CartPole-v1", "steps=300", "eval.every=150", "num_envs=3")
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert folder.parts[-4:-2] == ("CartPole-v1", "rainbow-none")
    assert any("train/return" in row for row in rows(folder))
    assert not any("bonus/mse" in row for row in rows(folder)), "no true states, nothing to compare with"
    assert sorted(path.name for path in (folder / "plots").iterdir()) == ["learning_curve.png"]


def test_continuous_actions_train_with_a_bonus(cfn, run_folders):
    short = ("steps=400", "eval.every=200", "eval.episodes=1", "agent.min_size=100", "bonus.min_size=100")
    done = cfn(
        "train", "env=gym", "env.id=Pendulum-v1", "env.bin=0.5", "agent=sac", "bonus=cfn", "tracker=none",
        "num_envs=2", "bonus.batch_size=64", *short,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert folder.parts[-4:-2] == ("Pendulum-v1", "sac-cfn")
    names = {name for row in rows(folder) for name in row}
    assert {"agent/loss", "agent/temperature", "bonus/loss", "bonus/mse", "train/return"} <= names


@pytest.mark.parametrize("bonus", ["cfn", "rnd", "pixelcnn"])
def test_a_learning_bonus_is_held_against_the_truth(cfn, run_folders, bonus):
    own = ["bonus.batch_size=32", "bonus.min_size=50"] if bonus == "cfn" else []
    done = cfn("train", *SMALL, f"bonus={bonus}", *own, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    last = rows(folder)[-1]
    assert last["bonus/mse"] >= last["bonus/affine_mse"]
    assert any("bonus/loss" in row for row in rows(folder))
    assert ("bonus/floor_mse" in last) == (folder / "plots" / "count_error.png").exists() == (bonus == "cfn")


@pytest.mark.parametrize("own", [["frame_stack=3", "num_envs=2"], ["agent.noisy=true", "agent.dueling=true"]])
def test_rainbow_trains_and_gives_the_same_run(cfn, tmp_path, own):
    keys = ["agent=rainbow", "agent.min_size=50", "bonus=cfn", "bonus.batch_size=32", "bonus.min_size=50", *own]
    for folder in "ab":
        done = cfn("train", *SMALL, *keys, f"hydra.run.dir={folder}", OMP_NUM_THREADS="1")
        assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    assert any("agent/loss" in row for row in rows(tmp_path / "a"))


def test_hydra_shows_the_config_and_the_help(cfn):
    shown = yaml.safe_load(cfn("train", "env=gridworld", "--cfg", "job", "--resolve").stdout)
    assert shown["steps"] == 250_000
    text = cfn("train", "--help").stdout
    assert "gridworld, gridworld_small, gym" in text
    assert "steps:" in text


MY_BONUS = """
import numpy as np
from cfn.bonuses.base import Bonus

class Constant(Bonus):
    def __init__(self, observation_space, seed=0, value: float = 1.0):
        self.value = value
    def observe(self, observations, states=None):
        return self.novelty(observations)
    def novelty(self, observations, states=None):
        return np.full(len(observations), self.value)
"""


def test_a_users_own_bonus_needs_one_file_and_one_yaml(cfn, tmp_path, run_folders):
    (tmp_path / "mine.py").write_text(MY_BONUS)
    (tmp_path / "my_conf" / "bonus").mkdir(parents=True)
    (tmp_path / "my_conf" / "bonus" / "constant.yaml").write_text("_target_: mine.Constant\nvalue: 0.25\n")
    own = ("--config-dir", "my_conf", *SMALL, "bonus=constant")
    done = cfn("train", *own, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert folder.parts[-3] == "random-constant"
    assert {row["train/bonus"] for row in rows(folder) if "train/bonus" in row} == {0.25}
    assert (
        "bonus.value=much: should be a valid number"
        in cfn("train", *own, "bonus.value=much", PYTHONPATH=str(tmp_path)).stderr
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cfn ", {"train", "resume", "eval", "plot", "runs", "report"}),
        ("cfn tr", {"train"}),
        ("cfn train env=g", {"env=gridworld", "env=gridworld_small", "env=gym"}),
        ("cfn train env.s", {"env.size="}),
        ("cfn train -m bonus=", {f"bonus={name}" for name in ("none", "count", "cfn", "rnd", "pixelcnn")}),
        ("cfn train env=gridworld ste", {"steps="}),
        ("cfn foo env=", set()),
    ],
)
def test_bash_completes_commands_groups_and_keys(tmp_path, line, expected):
    script = f"""
        eval "$(cfn -sc install=bash)"
        COMP_LINE={line!r} COMP_POINT={len(line)}
        COMP_WORDS=($COMP_LINE); [[ "$COMP_LINE" == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        hydra_bash_completion
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{CFN.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        timeout=60,
    )
    assert set(done.stdout.split()) == expected, done.stderr


def test_a_terminal_of_80_columns_shows_what_matters(tmp_path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    arguments = [str(CFN), "train", *WATCH, "tracker=none", "steps=20000", "eval.every=2000"]
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")} | {"TERM": "xterm"}
    process = subprocess.Popen(arguments, cwd=tmp_path, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    output = b""
    try:
        while block := os.read(ours, 65536):
            output += block
    except OSError:  # the terminal's way to say that nobody writes any more
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode())
    lines = [line for line in re.split(r"[\r\n]+", text) if "error" in line and "━" in line]
    assert lines, text
    assert re.search(r"\d:\d\d:\d\d +step [\d,]+/20,000 +[\d,]+/s +return \S+ +bonus \S+ +error \d", lines[-1])
    assert all(len(line) <= 80 for line in lines)


def test_ctrl_c_stops_the_run_and_says_so(tmp_path):
    arguments = [str(CFN), "train", *WATCH, "tracker=none", "steps=100000000", "hydra.run.dir=here"]
    process = subprocess.Popen(
        arguments,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs, which the tests may be among, ignore Ctrl-C and bequeath that to their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        metrics = tmp_path / "here" / "metrics.jsonl"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (metrics.exists() and metrics.stat().st_size):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors == "cfn: stopped\n"
    summary = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert summary["state"] == "stopped"
    assert 0 < summary["steps"] < 100_000_000


def test_a_failure_in_the_middle_is_written_down(cfn, tmp_path):
    (tmp_path / "mine.py").write_text(
        MY_BONUS + "    def update(self):\n        raise RuntimeError('the bonus broke')\n"
    )
    (tmp_path / "my_conf" / "bonus").mkdir(parents=True)
    (tmp_path / "my_conf" / "bonus" / "constant.yaml").write_text("_target_: mine.Constant\n")
    done = cfn(
        "train", "--config-dir", "my_conf", *SMALL, "bonus=constant", "hydra.run.dir=here", PYTHONPATH=str(tmp_path)
    )
    assert done.returncode == 1
    assert "the bonus broke (mine.py, line" in done.stderr
    assert "HYDRA_FULL_ERROR=1" in done.stderr
    assert "Traceback" not in done.stderr
    summary = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert summary["state"] == "failed"
    assert summary["error"] == "RuntimeError: the bonus broke"
    assert "Traceback" in Path(tmp_path / "here" / "train.log").read_text(), "where whoever mends it will look"
