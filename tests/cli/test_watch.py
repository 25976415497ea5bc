"""`cfn runs --watch`: filters, sorting and the time left."""

import json

import pytest
from folders import make_run

from cfn.analysis.listing import as_line, rows
from cfn.cli import watch
from cfn.cli.watch import Rates, sort_key


@pytest.fixture
def outputs(tmp_path):
    for seed, bonus in enumerate(("cfn", "rnd", "count")):
        make_run(tmp_path / "outputs", bonus=bonus, seed=seed, returns=(0, 10 - seed))
    return tmp_path / "outputs"


def shown(call, *arguments):
    done = call("runs", "--watch", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_table_is_filtered_and_sorted(call, outputs):
    title, header, *rows = shown(call, "outputs", "--sort", "score")
    assert title.startswith("3 of 3 runs: 3 finished")
    assert header.split() == ["ENV", "AGENT", "BONUS", "SEED", "STEPS", "SCORE", "STATE", "LEFT", "SETTING"]
    assert [row.split()[2] for row in rows] == ["count", "rnd", "cfn"], "numbers, not texts"
    title, _, row = shown(call, "bonus=rnd,pixelcnn", "state=finished")
    assert (title.split(":")[0], row.split()[2]) == ("1 of 3 runs", "rnd")


def test_wrong_arguments_are_one_sentence(call, outputs):
    for arguments, sentence in {
        ("--watch", "scale=3"): "scale=3: filters are of the form",
        ("--watch", "--sort", "beauty"): "--sort beauty: there is no such column",
        ("outputs", "bonus=cfn"): "bonus=cfn: filters need --watch",
        ("--watch", "nosuch"): "nosuch: there is no such folder",
    }.items():
        done = call("runs", *arguments)
        assert done.returncode in (1, 2)
        assert done.stderr.startswith(f"cfn: {sentence}")


def test_the_time_left_is_measured_or_taken_from_the_last_evaluation(outputs, monkeypatch):
    folder = next(path.parent for path in sorted(outputs.rglob("metrics.jsonl")))
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"state": "running"}))
    (line,) = map(as_line, rows([folder]))
    assert line.state == "killed", "nobody holds its lock"
    line = line._replace(state="running", steps="200 of 1,000")
    rates = Rates()
    assert (
        rates.seconds_left(line, now=0.0)
        == 800 / json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])["speed/steps_per_second"]
    )
    assert rates.seconds_left(line._replace(steps="300 of 1,000"), now=10.0) == 70
    assert rates.seconds_left(line._replace(state="finished"), now=11.0) is None
    assert sort_key("left", line, 70) < sort_key("left", line, None)
    assert watch._clock(3675) == "1:01:15"


def test_watching_ends_when_no_run_can_go_on(outputs):
    table, ended = watch.drawn(outputs, {}, "env", Rates())
    assert (table.row_count, ended) == (3, True)
    _, ended = watch.drawn(outputs, {"bonus": {"rnd"}}, "env", Rates())
    assert ended
    folder = next(path.parent for path in outputs.rglob("metrics.jsonl"))
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"state": "stopped"}))
    assert not watch.drawn(outputs, {}, "env", Rates())[1], "its job may start again"


def test_conditions_on_keys_choose_runs_too(call, outputs):
    title, _, row = shown(call, "outputs", "--where", "bonus=rnd")
    assert (title.split(":")[0], row.split()[2]) == ("1 of 1 runs", "rnd")
