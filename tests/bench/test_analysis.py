"""A thousand runs of a thousand rows each: time and memory to list, to draw and to compare them."""

import json
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from command import CFN
from folders import HEADER, make_run

from cfn.analysis.grouping import Group
from cfn.analysis.tally import tally

ENVS, METHODS, SEEDS = ("gridworld", "taxi5"), ("cfn", "rnd"), 10
SIZE = 21


@pytest.fixture(scope="module")
def many(tmp_path_factory, full):
    """A thousand runs of a thousand rows; as a smoke test, forty of five."""
    settings, length = (25, 1000) if full else (1, 5)
    root = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(0)
    for env in ENVS:
        for bonus in METHODS:
            for setting in range(settings):
                for seed in range(SEEDS):
                    write(root / f"{env}-{bonus}-{setting}", env, bonus, setting, seed, length, rng)
    assert len(list(root.rglob("metrics.jsonl"))) == 40 * settings
    return root


def write(root, env, bonus, setting, seed, length, rng):
    """As `cfn train` writes it, at its worst: every row with an evaluation, and a table of a whole gridworld."""
    folder = make_run(root, bonus, seed, env, config={f"bonus.key{i}": i for i in range(60)} | {"bonus.scale": setting})
    noise = rng.random((max(length, SIZE**2), 4))
    rows = []
    for i in range(length):
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


def test_a_thousand_runs_are_listed_in_three_seconds(many, bench):
    lines, seconds, memory = timed("runs", many)
    assert lines == bench.size(1001, 41)
    bench.report(f"{lines - 1:,} runs listed in {seconds:.1f} s, {memory:.0f} MiB", seconds=seconds, mib=memory)
    bench.require(seconds < 3)
    bench.require(memory < 1000)


def test_a_thousand_runs_are_drawn_in_twenty_seconds(many, tmp_path, bench):
    pictures, seconds, memory = timed("plot", many, "--out", tmp_path)
    assert pictures >= bench.size(10, 5)
    bench.report(f"{pictures} pictures drawn in {seconds:.1f} s, {memory:.0f} MiB", seconds=seconds, mib=memory)
    bench.require(seconds < 20)
    bench.require(memory < 1000)


def test_a_tally_of_a_hundred_tasks_takes_ten_seconds_of_one_core(bench):
    tasks, rng = bench.size(100, 3), np.random.default_rng(0)
    groups = [
        Group(f"task{task}", f"m{method}", tuple(rng.normal(method / 4, 1, 10)), {})
        for method in range(6)
        for task in range(tasks)
    ]
    score = dict.fromkeys((group.task for group in groups), SimpleNamespace(averages=list))
    start = time.process_time()
    pairs = tally(groups, score)
    seconds = time.process_time() - start
    assert len(pairs) == 15
    bench.report(f"tally of 6 methods on {tasks} tasks: {seconds:.1f} s of one core", seconds=seconds)
    bench.require(seconds < 10)
