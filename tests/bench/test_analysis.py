"""A thousand runs of a thousand rows each: how long they take to list and to draw, in how much memory."""

import json
import subprocess
import sys

import numpy as np
import pytest
from command import CFN
from folders import HEADER, make_run

ENVS, METHODS, SETTINGS, SEEDS, ROWS = ("gridworld", "taxi5"), ("cfn", "rnd"), 25, 10, 1000
SIZE = 21


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    root = tmp_path_factory.mktemp("thousand")
    rng = np.random.default_rng(0)
    for env in ENVS:
        for bonus in METHODS:
            for setting in range(SETTINGS):
                for seed in range(SEEDS):
                    write(root / f"{env}-{bonus}-{setting}", env, bonus, setting, seed, rng)
    assert len(list(root.rglob("metrics.jsonl"))) == 1000
    return root


def write(root, env, bonus, setting, seed, rng):
    """As `cfn train` writes it, at its worst: every row with an evaluation, and a table of a whole gridworld."""
    folder = make_run(root, bonus, seed, env, config={f"bonus.key{i}": i for i in range(60)} | {"bonus.scale": setting})
    noise = rng.random((ROWS, 4))
    rows = []
    for i in range(ROWS):
        row = {"step": (i + 1) * 50, "train/episodes": i, "train/return": noise[i, 0], "train/length": 50.0}
        row |= {"train/bonus": noise[i, 1], "agent/loss": noise[i, 2], "bonus/loss": noise[i, 3]}
        row |= {"eval/return": noise[i, 1], "eval/length": 50.0, "bonus/mse": noise[i, 2], "explore/states": i}
        row |= {"bonus/affine_mse": 0.1, "bonus/floor_mse": 0.01, "speed/steps_per_second": 100.0}
        rows.append(json.dumps(row))
    (folder / "metrics.jsonl").write_text("\n".join(rows) + "\n")
    states = [f"{i % SIZE} {i // SIZE},{i + 1},{(i + 1) ** -0.5},{noise[i, 3]}" for i in range(SIZE**2)]
    (folder / "counts" / "step_000000100.csv").write_text("\n".join([HEADER, *states]) + "\n")


TIMED = """
import os, resource, subprocess, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(len(done.stdout.splitlines()), time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(done.returncode)
"""


def timed(*arguments):
    """Lines that a command prints, its seconds of one core, and its peak in MiB; its time by the clock is printed."""
    command = [sys.executable, "-c", TIMED, str(CFN), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    lines, by_the_clock, seconds, memory = map(float, done.stdout.split())
    print(f"\ncfn {arguments[0]}: {seconds:.1f} s of one core ({by_the_clock:.1f} s by the clock), {memory:.0f} MiB")
    return int(lines), seconds, memory


@pytest.mark.bench
def test_a_thousand_runs_are_listed_in_three_seconds(thousand):
    lines, seconds, memory = timed("runs", thousand)
    assert lines == 1001
    assert seconds < 3
    assert memory < 1000


@pytest.mark.bench
def test_a_thousand_runs_are_drawn_in_twenty_seconds(thousand, tmp_path):
    pictures, seconds, memory = timed("plot", thousand, "--out", tmp_path)
    assert pictures >= 10
    assert seconds < 20
    assert memory < 1000
