"""Runs with compiled updates beside the same runs without; they take turns."""

from composing import composed
from looping import Looping
from measuring import steps_per_second, told

AGENT, BONUS = "agent.batch_size=2", "bonus.batch_size=4"
CASES = {
    "the default run": (1.3, 300, ("env=gridworld_small", "bonus=cfn"), (AGENT, BONUS)),
    "SAC alone, batch 256": (1.2, 150, ("env=fetch_push", "bonus=none", "agent.batch_size=256"), (AGENT,)),
    "Rainbow alone, gridworld": (1.0, 40, ("env=gridworld", "bonus=none"), (AGENT,)),
    "Rainbow and CFN, gridworld": (1.0, 12, ("env=gridworld", "bonus=cfn"), (AGENT, BONUS)),
    "Rainbow and RND, gridworld": (1.0, 30, ("env=gridworld", "bonus=rnd"), (AGENT,)),
    "Rainbow and CFN, Montezuma": (1.0, 24, ("env=montezuma", "bonus=cfn"), (AGENT, BONUS)),
    "SAC and CFN, FetchPush": (1.0, 70, ("env=fetch_push", "bonus=cfn"), (AGENT, BONUS)),
    "SAC and RND, FetchPush": (1.0, 120, ("env=fetch_push", "bonus=rnd"), (AGENT,)),
}
"""Required ratio, steps of a turn, overrides, and those of a smoke test; the paper's sizes but for the first two."""
NOISE = 0.02
"""Differences of medians that show nothing."""


def pytest_generate_tests(metafunc):
    """Smoke tests are few: compiling takes seconds even if there is little to run."""
    full = metafunc.config.getoption("--bench")
    metafunc.parametrize("case", CASES if full else ("SAC and RND, FetchPush",))
    metafunc.parametrize("threads", (1, 2) if full else (1,))


def learning_run(folder, fill, *overrides):
    """A run that learns from now on."""
    parts = ("agent", "bonus") if "bonus=cfn" in overrides else ("agent",)
    config, _ = composed("tracker=none", "device=cpu", *overrides, *(f"{part}.min_size={fill}" for part in parts))
    run = Looping(folder, config)
    run(fill)
    return run


def test_compiled_updates_are_not_slower(tmp_path, case, threads, bench):
    required, steps, overrides, small = CASES[case]
    overrides = (*overrides, f"threads={threads}", *bench.size((), small))
    fill = bench.size(3_000 if "bonus=cfn" in overrides else 1_100, 20)  # CFN's speed depends on how many frames repeat
    runs = {
        name: learning_run(tmp_path / name, fill, *overrides, f"compile={str(name == 'compiled').lower()}")
        for name in ("eager", "compiled")
    }
    rates = steps_per_second(runs, *bench.size((steps, 7, 40), (2, 1, 2)))
    ratio = rates["compiled"] / rates["eager"]
    bench.report(f"{case}, {threads} threads: steps per second: {told(rates)}: {ratio:.2f}x", ratio=ratio, **rates)
    bench.require(ratio >= required - NOISE, f"{ratio:.2f}x instead of {required}x")
