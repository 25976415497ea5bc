"""What checkpoints cost: a Montezuma run of 100,000 entries, saved and resumed."""

import subprocess
import time

import pytest
from command import CFN
from resuming import claimed

from cfn.bonuses.visits import Visits
from cfn.checkpoints.store import Checkpoints

pytestmark = pytest.mark.bench

ENTRIES = 100_000
UNLEARNED = ("agent.min_size=1000000", "bonus.min_size=1000000")  # nothing is learned until then: it fills faster


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The run, with full-sized networks, once its buffers have 100,000 entries."""
    every = ("checkpoint.every=1000000", "eval.every=1000000")
    run, training = claimed(
        tmp_path_factory.mktemp("run"), "env=montezuma", "bonus=cfn", *UNLEARNED, *every, f"steps={ENTRIES}"
    )
    training.run(run)
    return run, training


def test_a_checkpoint_takes_at_most_two_seconds(filled, tmp_path):
    _, training = filled
    checkpoints, seconds = Checkpoints(tmp_path), []
    for step in (1, 2, 3):
        start = time.perf_counter()
        checkpoints.save(step, training.state_dict())
        seconds.append(time.perf_counter() - start)
        for _ in range(1000):
            observations, states = training.envs.begin_episodes()
            actions = training.agent.act(observations)
            after = training.envs.step(actions)
            training.bonus.observe(observations[..., -1].copy(), Visits(states))
            training.agent.observe(observations, actions, after.rewards, *after[:1], *after[3:])
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    times = ", ".join(f"{s:.2f}" for s in seconds)
    print(f"\ncheckpoints of {ENTRIES:,} entries, a thousand steps apart: {times} s; {size / 2**20:.0f} MiB in all")
    assert max(seconds) <= 2


def test_a_run_is_resumed_within_twenty_seconds(filled):
    """From the command to its end: one step more, and the evaluation and checkpoint after it."""
    run, _ = filled
    start = time.perf_counter()
    done = subprocess.run(
        [str(CFN), "resume", str(run.folder), f"steps={ENTRIES + 1}"], capture_output=True, text=True, check=True
    )
    seconds = time.perf_counter() - start
    print(f"\nresumed, one step taken, evaluated and saved: {seconds:.1f} s\n{done.stdout.splitlines()[-1]}")
    assert seconds <= 20
