import numpy as np
import pytest

from cfn.analysis.files import (
    count_tables,
    flat,
    latest,
    printable,
    read_config,
    read_counts,
    read_metrics,
    read_overrides,
    read_summary,
)
from cfn.errors import UsageError

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
    assert count_tables(tmp_path) == []
    (tmp_path / "counts" / "step_000000900.csv").write_text(HEADER + "0 0,1,1,1\n")
    (tmp_path / "counts" / "step_000001000.csv").write_text(HEADER + "0 0,1,1,0.5\n2 -1,4,0.5,0.25\n")
    for name in ("other", "²"):
        (tmp_path / "counts" / f"step_{name}.csv").write_text("nothing of ours")
    older, newer = count_tables(tmp_path)
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


@pytest.mark.parametrize(
    "text",
    ["", "a,b\n1,2\n", HEADER + "0 0,x,1,1\n", HEADER + "0 0,1,1,1\n0,1,1,1\n", HEADER + "0" * 200_000 + ",1,1,1\n"],
)
def test_a_broken_table_is_a_sentence(tmp_path, text):
    path = tmp_path / "step_000000001.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match="is not a table of state, count"):
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
        with pytest.raises(UsageError, match="is no config: it has no keys"):
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
    with pytest.raises(UsageError, match="is no config: it has more than 10,000 values"):
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
