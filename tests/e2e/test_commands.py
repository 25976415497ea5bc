"""`cfn train` as users run it: as a process."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
import yaml
from command import CFN
from metrics import rows

import cfn as package

WATCH = ("agent=random", "bonus=count")  # nothing that learns
SMALL = (*WATCH, "env.size=7", "env.image_size=14", "steps=300", "eval.every=150", "tracker=none", "pictures=false")


def test_the_output_may_be_cut_short(tmp_path):
    for arguments in (" ".join(SMALL), "--help"):
        line = f"{CFN} train {arguments} | head -1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path, timeout=60)
        assert done.stderr == ""
        assert done.stdout.splitlines()[-1] == "0"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["trian"], 2, "there is no command 'trian'"),
        (["train", "env=nosuch"], 1, "env=nosuch: there is no such option"),
        (["train", "env.sizee=3"], 1, "env.sizee is not a key (did you mean env.size?)"),
        (["train", "env.size=abc"], 1, "env.size=abc: should be a valid integer"),
        (["train", "env=["], 1, "env=[: this is not of the form key=value"),
        (["train", "hydra.run.dir=/proc/nowhere"], 1, "/proc/nowhere: No such file or directory"),
        (["resume", "nowhere"], 1, "nowhere: there is no such folder"),
        (["eval", "nowhere", "--episodes", "0"], 2, "0 is not a whole number of at least 1"),
        (["plot", "nowhere"], 1, "nowhere: there is no such folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_of_each_kind(cfn, tmp_path, arguments, code, message):
    """All bad input is tried within the process of the tests; here one of each kind as a user would type it."""
    done = cfn(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert set(tmp_path.iterdir()) <= {tmp_path / "outputs"}


def test_python_m_is_the_command(tmp_path):
    """For those whose `cfn` is another package's command."""
    command = [sys.executable, "-m", "cfn", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stdout == f"cfn {package.__version__}\n"


def test_the_traceback_is_there_for_those_who_ask(cfn):
    done = cfn("train", "env.size=5", HYDRA_FULL_ERROR="1")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "BadValueError" in done.stderr


def test_a_sweep_can_be_spread_over_processes(cfn, run_folders):
    done = cfn("train", "-m", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "seed=0,1", *SMALL)
    assert done.returncode == 0, done.stderr
    assert [folder.name for folder in run_folders()] == ["seed=0", "seed=1"]
    assert len({folder.parent for folder in run_folders()}) == 1
    assert "2 of 2 runs done, 0 running, 0 queued, 0 failed" in done.stdout
    assert "finished after" not in done.stdout, "lines of parallel runs would mix"
    assert all("finished after" in (folder / "train.log").read_text() for folder in run_folders())


def test_a_terminal_of_80_columns_shows_what_matters(tmp_path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    steps = ["steps=900000", "eval.every=9000"]  # seconds of training between evaluations; ended when seen
    arguments = [str(CFN), "train", *WATCH, "tracker=none", *steps, "eval.episodes=1", "checkpoint.every=null"]
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")} | {"TERM": "xterm"}
    process = subprocess.Popen(arguments, cwd=tmp_path, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    lines, output = [], b""  # lines shown while it trains, after the first evaluation
    try:
        while not lines and select.select([ours], [], [], 60)[0] and (block := os.read(ours, 65536)):
            output += block
            text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode(errors="ignore"))
            shown = [line for line in re.split(r"[\r\n]+", text) if re.search("━.* error [0-9]", line)]
            lines = [line for line in shown if "evaluating" not in line]
    except OSError:  # raised when the other end of the terminal is closed
        pass
    finally:
        process.kill()
        process.wait(timeout=60)
        os.close(ours)
    assert lines, output.decode()
    assert re.search(r"\d:\d\d:\d\d +step [\d,]+(/900,000)?( +[\d,]+/s)? +return \S+ +bonus \S+ +error \d", lines[-1])
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


def test_what_a_run_leaves(cfn, tmp_path, run_folders):
    keys = (*SMALL, "seed=4", "pictures=true")
    done = cfn("train", *keys)
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
    assert yaml.safe_load((folder / ".hydra/overrides.yaml").read_text()) == list(keys)
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


def test_a_folder_that_holds_a_run_is_not_touched(cfn, tmp_path):
    first = cfn("train", *SMALL, "hydra.run.dir=here")
    assert first.returncode == 0, first.stderr
    before = {path: path.read_bytes() for path in (tmp_path / "here").rglob("*") if path.is_file()}
    second = cfn("train", *SMALL, "seed=1", "hydra.run.dir=here")
    assert second.returncode == 1
    assert "here already holds a run" in second.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "here").rglob("*") if path.is_file()} == before


def test_state_action_counts_have_tables_and_errors_of_their_own(cfn, run_folders):
    options = ("agent=random", "bonus.of=state_action", "bonus.min_size=50", "env.size=7", "env.image_size=14")
    done = cfn(
        "train",
        *options,
        "steps=200",
        "eval.every=200",
        "eval.episodes=1",
        "tracker=none",
        "pictures=false",
        "threads=1",
    )
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    table = [line.split(",") for line in (folder / "counts" / "step_000000200.csv").read_text().splitlines()[1:]]
    assert all(len(state.split()) == 3 for state, *_ in table), "x, y and the action"
    assert sum(int(visits) for _, visits, *_ in table) == 200
    last = rows(folder)[-1]
    assert 0 < last["bonus/floor_mse"] < last["bonus/mse"]
    assert last["explore/states"] == len({state.rpartition(" ")[0] for state, *_ in table})
