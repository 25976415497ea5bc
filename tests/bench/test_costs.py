"""Cost of the paper's experiments on this machine: each method's loop is timed at full size, and multiplied out."""

import time

import pytest
from composing import composed
from looping import Looping
from metrics import rows

from cfn.analysis.experiments import plan
from cfn.config import CONF

FILL = {"gridworld": 20_000, "taxi": 20_000, "montezuma": 3_000}
"""Random steps before the coin-flip network learns: how many frames of a batch are the same decides its speed."""
FEW = {"cfn": 1_100, "sac": 300}
"""Steps before learning of other runs, by bonus or agent: more than one batch."""
FEWEST, WARM_UP, SECONDS = 50, 8, 4
LEARNERS = ("rainbow", "sac", "cfn", "rnd")
"""Agents and bonuses that report a loss."""
SMALL = {
    "cfn": ["bonus.batch_size=4"],
    "rainbow": ["agent.batch_size=2"],
    "sac": ["agent.batch_size=2"],
    **{name: [] for name in ("rnd", "pixelcnn", "none", "random")},
}
"""Sizes of a smoke test."""
ALIKE = {"env.mode", "env.action_noise", "env.sticky", "suite.cfn.capacity"}
"""Keys that change nothing in the speed."""
EXPERIMENTS = sorted({path.stem for path in (CONF / "experiment").glob("*.yaml")} - {"none"})


def learning(cell, bench):
    """Overrides with which a run of these values learns from early on, and the steps until then."""
    bonus, agent = cell["bonus"], cell["agent"]
    fill = next((fill for env, fill in FILL.items() if cell["env"].startswith(env) and bonus == "cfn"), None)
    fill = fill or FEW.get(bonus, FEW.get(agent, FEWEST))
    fill = bench.size(fill, 40)
    sizes = [f"{group}.min_size={fill}" for group in ("agent", "bonus") if cell[group] in ("rainbow", "sac", "cfn")]
    return fill if sizes else 0, sizes + (["agent.epsilon_decay=0"] if agent == "rainbow" else [])


def measured(folder, experiment, cell, bench):
    """Steps per second of a run once it learns, without evaluations."""
    fill, sizes = learning(cell, bench)
    overrides = [f"{key}={value}" for key, value in cell.items()]
    sizes += [] if bench.full else SMALL[cell["bonus"]] + SMALL[cell["agent"]]
    config, _ = composed(f"experiment={experiment}", "tracker=none", "device=cpu", *overrides, *sizes)
    go_on = Looping(folder, config)
    go_on(fill + WARM_UP)
    steps, start = 0, time.perf_counter()
    while (taken := time.perf_counter() - start) < bench.size(SECONDS, 0.01):
        go_on(WARM_UP)
        steps += WARM_UP
    losses = {f"{group}/loss" for group in ("agent", "bonus") if cell[group] in LEARNERS}
    assert set(rows(folder)[-1]) >= losses, "it was learning"
    return steps / taken


@pytest.fixture(scope="module")
def rates():
    """Steps per second, by kind of run: several experiments have the same."""
    return {}


def pytest_generate_tests(metafunc):
    """Time every experiment at full size; one of each suite shows that it still runs."""
    if "experiment" in metafunc.fixturenames:
        few = ("gridworld_counts", "fetch", "montezuma_curves")
        metafunc.parametrize("experiment", EXPERIMENTS if metafunc.config.getoption("--bench") else few)


def test_what_an_experiment_costs(tmp_path, rates, experiment, bench):
    days, lines = 0.0, []
    cells, seeds = plan(CONF, experiment, "paper")
    cells = cells if bench.full else cells[:1]
    for i, cell in enumerate(cells):
        overrides = [f"{key}={value}" for key, value in cell.items()]
        config, _ = composed(f"experiment={experiment}", *overrides)
        noisy = config.agent.keys.get("noisy")
        kind = (noisy, *sorted(f"{key}={value}" for key, value in cell.items() if key not in ALIKE))
        if kind not in rates:
            rates[kind] = measured(tmp_path / str(i), experiment, cell, bench)
            lines.append(f"{' '.join(overrides)}: {rates[kind]:.1f} steps per second")
        days += seeds * config.steps / rates[kind] / 86_400
    bench.report(f"at the paper's size {days:.1f} days, one run after the other; {'; '.join(lines)}", days=days)
