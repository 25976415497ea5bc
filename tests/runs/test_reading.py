import numpy as np
import pytest

from cfn.errors import UsageError
from cfn.runs.layout import Layout
from cfn.runs.reading import (
    flat,
    latest,
    printable,
    read_config,
    read_counts,
    read_metrics,
    read_overrides,
    read_summary,
)

HEADER = "state,count,true_bonus,predicted_bonus\n"


def test_metrics_become_series_and_a_half_line_is_left_out(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "a": 2}\n{"step": 3, "a": 4, "b": 5.5}\n{"step": 4, "a": ')
    metrics = read_metrics(tmp_path)
    assert metrics["a"].steps.tolist() == [1, 3]
    assert metrics["a"].values.tolist() == [2, 4]
    assert metrics["b"].steps.tolist() == [3]
    assert list(read_metrics(tmp_path, ["b", "c"])) == ["b"]


def test_what_is_no_number_is_left_out(tmp_path):
    lines = ['{"step": 1, "a": null}', "[1, 2]", "", '{"a": 1}', '{"step": "x", "a": 1}', '{"step": 2, "a": NaN}']
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, '{"step": 3, "a": 7, "b": "x"}', "\x00\xff"]))
    metrics = read_metrics(tmp_path)
    assert {name: (s.steps.tolist(), s.values.tolist()) for name, s in metrics.items()} == {"a": ([3], [7])}


def test_steps_come_in_order_and_the_later_row_counts(tmp_path):
    rows = [(100, 1), (200, 2), (300, 3), (200, 5), (400, 6)]  # a run that went on from an older checkpoint
    (tmp_path / "metrics.jsonl").write_text("\n".join(f'{{"step": {s}, "a": {v}}}' for s, v in rows))
    series = read_metrics(tmp_path)["a"]
    assert (series.steps.tolist(), series.values.tolist()) == ([100, 200, 300, 400], [1, 5, 3, 6])


def test_the_latest_values_come_from_the_end_of_the_file(tmp_path):
    lines = [f'{{"step": {i}, "padding": "{"x" * 100}"}}' for i in range(5000)]
    lines[3] = lines[-9] = '{"step": 7, "a": 0.5, "b": null}'
    lines[3] = lines[3].replace("0.5", "0.25").replace("null", "3")
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, '{"step": 50, "a": 9']))
    assert latest(tmp_path, "step", "a", "b", "c") == {"step": 4999, "a": 0.5, "b": 3}, "b from far back"
    (tmp_path / "metrics.jsonl").write_text("")
    assert latest(tmp_path, "step") == {}


def test_the_tables_of_a_run(tmp_path):
    (tmp_path / "counts").mkdir()
    assert Layout(tmp_path).count_tables() == []
    (tmp_path / "counts" / "step_000000900.csv").write_text(HEADER + "0 0,1,1,1\n")
    (tmp_path / "counts" / "step_000001000.csv").write_text(HEADER + "0 0,1,1,0.5\n2 -1,4,0.5,0.25\n")
    for name in ("other", "²"):
        (tmp_path / "counts" / f"step_{name}.csv").write_text("nothing of ours")
    older, newer = Layout(tmp_path).count_tables()
    assert read_counts(older).step == 900
    table = read_counts(newer)
    assert table.step == 1000
    assert table.states.tolist() == [[0, 0], [2, -1]]
    assert table.counts.tolist() == [1, 4]
    assert np.allclose(table.predicted_bonus, [0.5, 0.25])


def test_half_written_and_empty_tables(tmp_path):
    path = tmp_path / "step_000000001.csv"
    path.write_text(HEADER + "0 0,1,1,0.5\n2 -1,4")
    assert read_counts(path).counts.tolist() == [1]
    path.write_text(HEADER)
    assert len(read_counts(path).counts) == 0


def test_states_that_are_no_places_are_left_out(tmp_path):
    path = tmp_path / "step_000000001.csv"
    path.write_text(HEADER + "nan nan,1,1,0.5\n2 -1,4,0.5,0.5\ninf 0,1,1,1\n")
    assert read_counts(path).states.tolist() == [[2, -1]]


def test_a_table_has_visits_and_arrivals(tmp_path):
    """From (0, 0) to (1, 0) and on to the goal (1, 1), where the episode ends; twice, and once more to (1, 0)."""
    path = tmp_path / "step_000000005.csv"
    rows = "0 0,3,0.57735,0.6,0\n1 0,2,0.707107,0.5,3\n1 1,0,,0.9,2\n"
    path.write_text(HEADER.replace("\n", ",arrivals\n") + rows)
    table = read_counts(path)
    assert table.states.tolist() == [[0, 0], [1, 0]], "no action was taken at the goal"
    assert table.counts.tolist() == [3, 2]
    assert table.true_bonus.tolist() == [0.57735, 0.707107]
    arrived = table.arrived
    assert arrived.states.tolist() == [[1, 0], [1, 1]], "no step led to the start"
    assert arrived.counts.tolist() == [3, 2]
    assert arrived.true_bonus == pytest.approx([3**-0.5, 2**-0.5])
    assert arrived.predicted_bonus.tolist() == [0.5, 0.9]
    assert (arrived.step, arrived.arrived) == (5, None)


@pytest.mark.parametrize("arrivals", [None, (1, 1)])
def test_arrivals_that_were_not_all_counted_are_not_used(tmp_path, arrivals):
    """An older version wrote the table, or began the run: of five actions, two arrivals were counted."""
    path = tmp_path / "step_000000005.csv"
    lines = [HEADER.strip(), "0 0,3,0.57735,0.6", "1 0,2,0.707107,0.5"]
    extra = ["", "", ""] if arrivals is None else [",arrivals", *(f",{n}" for n in arrivals)]
    path.write_text("".join(f"{line}{more}\n" for line, more in zip(lines, extra, strict=True)))
    table = read_counts(path)
    assert table.counts.tolist() == [3, 2]
    assert table.arrived is None


def test_only_the_true_bonus_may_be_empty(tmp_path):
    path = tmp_path / "step_000000001.csv"
    path.write_text(HEADER + "0 0,1,1,\n")
    with pytest.raises(UsageError, match=r"columns state, count, true_bonus, predicted_bonus$"):
        read_counts(path)


@pytest.mark.parametrize(
    "text",
    ["", "a,b\n1,2\n", HEADER + "0 0,x,1,1\n", HEADER + "0 0,1,1,1\n0,1,1,1\n", HEADER + "0" * 200_000 + ",1,1,1\n"],
)
def test_a_broken_table_is_a_sentence(tmp_path, text):
    path = tmp_path / "step_000000001.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match="is not a count table: it needs the columns state, count"):
        read_counts(path)


def test_the_config_is_read_without_running_anything(tmp_path):
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "config.yaml").write_text("env:\n  size: 4\n")
    assert read_config(tmp_path) == {"env": {"size": 4}}
    (tmp_path / ".hydra" / "config.yaml").write_text("!!python/object/apply:os.system ['echo broken']")
    with pytest.raises(UsageError, match=r"config.yaml is not valid YAML"):
        read_config(tmp_path)
    (tmp_path / ".hydra" / "config.yaml").write_text(f"seed: {'1' * 5000}\n")
    with pytest.raises(UsageError, match=r"config.yaml is not valid YAML"):
        read_config(tmp_path)
    for text in ("", "- a\n", "seed: 3\n"):
        (tmp_path / ".hydra" / "config.yaml").write_text(text)
        with pytest.raises(UsageError, match="is not a config: it has no keys"):
            read_config(tmp_path)


def test_values_of_a_config_can_be_compared_whatever_yaml_made_of_them(tmp_path):
    (tmp_path / ".hydra").mkdir()
    text = "a: [{2020-01-01: 1, x: 2, 3: {4: 5}}]\nb: {1: x, c: 2020-01-01}\n"
    (tmp_path / ".hydra" / "config.yaml").write_text(text)
    keys = dict(flat(read_config(tmp_path)))
    assert keys == {"a": [{"2020-01-01": 1, "x": 2, "3": {"4": 5}}], "b.1": "x", "b.c": "2020-01-01"}


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]",
        "a: &a [x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    ],
)
def test_a_config_without_end_is_refused_at_once(tmp_path, text):
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "config.yaml").write_text(text)
    with pytest.raises(UsageError, match="is not a config: it has more than 10,000 values"):
        read_config(tmp_path)


def test_what_is_missing_or_broken_is_a_sentence(tmp_path):
    assert read_summary(tmp_path) == {}
    assert read_overrides(tmp_path) == []
    (tmp_path / "summary.json").write_text('{"state": ')
    with pytest.raises(UsageError, match=r"summary.json is not valid JSON"):
        read_summary(tmp_path)
    (tmp_path / "summary.json").write_text("[]")
    with pytest.raises(UsageError, match=r"summary.json is not a JSON object"):
        read_summary(tmp_path)
    for read in (read_config, read_metrics, latest):
        with pytest.raises(UsageError, match="cannot be read: No such file"):
            read(tmp_path)


def test_a_terminal_is_not_obeyed():
    assert printable("a\x1b[31mb\nc") == "a?[31mb?c"
