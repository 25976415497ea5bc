"""Runs of any kind, side by side: they are grouped, named, listed, tabulated and drawn."""

import json

import matplotlib.image
import numpy as np
import pytest
from folders import HEADER, make_run
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cfn.analysis import listing
from cfn.analysis.experiments import members
from cfn.analysis.figures.panels import Style
from cfn.analysis.figures.paper import FIGURES
from cfn.analysis.figures.several_runs import compare, too_many
from cfn.analysis.grouping import differing_keys, group
from cfn.analysis.report.page import page
from cfn.analysis.scores import unequal
from cfn.analysis.tables import as_csv, cells, markdown, rows
from cfn.config import CONF
from cfn.errors import UsageError
from cfn.runs.record import find_runs, load_runs


def options(group):
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


KEYS = (
    "env.kwargs.map_name", "env.mode", "env.game", "env.size", "env.action_noise", "agent.noisy", "agent.lr",
    "bonus.lr", "bonus.prior", "bonus.flips", "bonus.capacity", "bonus.scale", "frame_stack", "bf16",
    "eval.every", "steps",
)  # fmt: skip
METRICS = ("bonus/mse", "bonus/floor_mse", "eval/return", "explore/states", "train/return", "speed/steps_per_second")

texts = st.sampled_from(["", "hard", "zero", "a, b=1", "$x^", "_x", "\x1b[1m", "x" * 60 + "1", "x" * 60 + "2"])
numbers = st.integers(-3, 3) | st.floats() | st.sampled_from([20_000_000, 10**30, -(10**400)])
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=3,
)
runs = st.fixed_dictionaries(
    {
        "env": st.sampled_from(["gridworld", "gridworld", "atari", "atari-Breakout", "CartPole-v1", *options("env")]),
        "agent": st.sampled_from(options("agent")),
        "bonus": st.sampled_from([*options("bonus"), "mine", "_mine", "CFN", "CFN (1)"]),
        "seed": st.integers(0, 2),
        "every": st.sampled_from([1, 37, 100, 1000]),
        "rows": st.lists(st.tuples(*[st.sampled_from([0, 1, 0.5, -3, 1e9])] * 2), max_size=4),
        "config": st.dictionaries(st.sampled_from(KEYS), values, max_size=3),
        "named": st.sets(st.sampled_from(KEYS), max_size=3),
        "experiment": st.sampled_from(["", *FIGURES]),
        "state": st.sampled_from(["finished", "running", "failed"]),
        "lacking": st.sets(st.sampled_from(METRICS)),
        "summary": st.booleans(),
        "tables": st.integers(0, 2),
        "dimensions": st.sampled_from([0, 1, 2, 2, 2, 3, 4]),
        "origin": st.sampled_from([0, 0, 10**6, 2**39]),
    }
)
mixes = st.lists(runs, min_size=1, max_size=5)


def write(root, run):
    """Write the folder of a run, with what it lacks left out."""
    scores, errors = zip(*run["rows"], strict=True) if run["rows"] else ((), ())
    overrides = [f"{key}=1" for key in run["named"] & run["config"].keys()]
    folder = make_run(
        root, run["bonus"], run["seed"], run["env"], run["agent"], scores, errors, run["every"], run["config"],
        overrides + [f"experiment={run['experiment']}"] * bool(run["experiment"]), run["state"], tables=0,
    )  # fmt: skip
    metrics = folder / "metrics.jsonl"
    written = [json.loads(line) for line in metrics.read_text().splitlines()]
    kept = [{name: value for name, value in row.items() if name not in run["lacking"]} for row in written]
    metrics.write_text("".join(json.dumps(row) + "\n" for row in kept))
    if not run["summary"]:
        (folder / "summary.json").unlink()
    for table in range(run["tables"]):
        states = [" ".join(map(str, [run["origin"] + i, table, 0, 0][: run["dimensions"]])) for i in range(3)]
        table_lines = [f"{state},{i + 1},{(i + 1) ** -0.5},{run['seed'] - 1 + i}" for i, state in enumerate(states)]
        (folder / "counts" / f"step_{table * 100:09}.csv").write_text("\n".join([HEADER, *table_lines]) + "\n")
    if run["dimensions"] == 3:
        (folder / "rooms").mkdir()
        matplotlib.image.imsave(folder / "rooms" / "0.png", np.zeros((21, 16)), cmap="gray")


def records_of(mix, root):
    for run in mix:
        write(root, run)
    listed = [listing.as_line(row) for row in listing.rows(find_runs([root])[0])]
    assert listing.as_text(listed).count("\n") == len(mix), "a line each, below the header"
    (records, _), refusal = attempt(load_runs, [root], otherwise=([], []))
    assert not refusal or "no metrics" in refusal
    assume(records)
    return records


def attempt(function, *arguments, otherwise=None):
    """Return the result of a function and an empty text; or `otherwise` and the sentence with which it refuses."""
    try:
        return function(*arguments), ""
    except UsageError as error:
        return otherwise, str(error)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mixes, st.sampled_from([*FIGURES]))
def test_any_mix_is_grouped_named_and_tabulated(tmp_path_factory, mix, experiment):
    records = records_of(mix, tmp_path_factory.mktemp("mix"))
    groups, repeated = group(records)
    drawn = [run for one in groups for run in one.runs]
    assert len(drawn) == len(records) if not repeated else 0 < len(drawn) < len(records)
    names = [(one.task, one.label) for one in groups]
    assert len(set(names)) == len(names), "settings that differ have different names"
    for one in groups:
        assert len({(run.task, run.agent, run.bonus) for run in one.runs}) == 1
        assert [run.seed for run in one.runs] == sorted({run.seed for run in one.runs})
    listed = dict(zip(map(id, records), differing_keys(records), strict=True))
    lines_of = [{(run.task, run.agent, run.bonus, listed[id(run)]) for run in one.runs} for one in groups]
    assert all(len(some) == 1 for some in lines_of), "seeds of a setting are listed alike"
    assert len(set.union(*lines_of)) == len(groups), "different settings are not"
    too_many(groups)
    for stat, returns in (("iqm", "eval"), ("mean", "train")):
        unequal(groups, returns)
        table = rows(groups, stat, returns)
        assert len(cells(table)) == len(as_csv(table, stat).splitlines()) - 1 >= len(groups)
        assert markdown(table, stat).count("\n| ") >= len(groups)
    found, refusal = attempt(members, records, experiment, CONF)
    assert {one.task for one in found.groups} <= {*found.tasks} if found else f"belongs to {experiment}" in refusal


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Glyph .* missing")
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mixes, st.sampled_from([*FIGURES]))
def test_any_mix_is_drawn(tmp_path_factory, mix, experiment):
    records = records_of(mix, tmp_path_factory.mktemp("mix"))
    groups, problems = group(records)
    names = []
    for name, figure in compare(
        groups, Style(seeds=True, score="train", error="rmse", counted="arrivals", smoothing=2)
    ):
        figure.draw_without_rendering()
        names.append(name)
    assert len(set(names)) == len(names) > 0
    assert "</html>" in page(groups, Style(), problems, tmp_path_factory.getbasetemp())
    if found := attempt(members, records, experiment, CONF)[0]:
        draw, style, make_table = FIGURES[experiment]
        figure, refusal = attempt(draw, found, style)
        assert figure or "none of the runs has a number" in refusal
        if figure:
            figure.draw_without_rendering()
        if make_table:
            assert make_table(found, style).count("\n| ") >= len(found.groups)
