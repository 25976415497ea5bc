"""Cost of checkpoints: a Montezuma run of 100,000 entries, saved and resumed."""

import subprocess
import time

import pytest
from command import CFN
from resuming import claimed

from cfn.bonuses.visits import Visits
from cfn.checkpoints.store import Checkpoints

UNLEARNED = ("agent.min_size=1000000", "bonus.min_size=1000000")  # nothing is learned until then: it fills faster


@pytest.fixture(scope="module")
def filled(tmp_path_factory, full):
    """The run, with full-sized networks, once its buffers have 100,000 entries; as a smoke test, 100."""
    entries = 100_000 if full else 100
    every = ("checkpoint.every=1000000", "eval.every=1000000")
    run, training = claimed(
        tmp_path_factory.mktemp("run"), "env=montezuma", "bonus=cfn", *UNLEARNED, *every, f"steps={entries}"
    )
    training.run(run)
    return run, training, entries


def test_a_checkpoint_takes_at_most_two_seconds(filled, tmp_path, bench):
    _, training, entries = filled
    checkpoints, seconds = Checkpoints(tmp_path), []
    for step in (1, 2, 3):
        start = time.perf_counter()
        checkpoints.save(step, training.state_dict())
        seconds.append(time.perf_counter() - start)
        for _ in range(bench.size(1000, 10)):
            observations, states = training.envs.begin_episodes()
            actions = training.agent.act(observations)
            after = training.envs.step(actions)
            training.bonus.observe(observations[..., -1].copy(), Visits(states))
            training.agent.observe(observations, actions, after.rewards, *after[:1], *after[3:])
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    times = ", ".join(f"{s:.2f}" for s in seconds)
    bench.report(f"checkpoints of {entries:,} entries: {times} s; {size / 2**20:.0f} MiB in all", seconds=seconds)
    bench.require(max(seconds) <= 2)


def test_a_run_is_resumed_within_twenty_seconds(filled, bench):
    """From the command to its end: one step more, and the evaluation and checkpoint after it."""
    run, _, entries = filled
    start = time.perf_counter()
    done = subprocess.run(
        [
            str(CFN),
            "resume",
            str(run.folder),
            f"steps={entries + 1}",
            f"eval.steps={bench.size(125_000, 1)}",
            f"eval.max_steps={bench.size(27_000, 10)}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = time.perf_counter() - start
    assert "finished" in done.stdout
    bench.report(f"resumed, one step taken, evaluated and saved: {seconds:.1f} s", seconds=seconds)
    bench.require(seconds <= 20)
