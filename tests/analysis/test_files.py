import numpy as np

from cfn.analysis.files import latest_counts, read_config, read_metrics


def test_metrics_become_series_and_a_half_line_is_left_out(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "a": 2}\n{"step": 3, "a": 4, "b": 5.5}\n{"step": 4, "a": ')
    metrics = read_metrics(tmp_path)
    assert metrics["a"].steps.tolist() == [1, 3]
    assert metrics["a"].values.tolist() == [2, 4]
    assert metrics["b"].steps.tolist() == [3]


def test_the_newest_table_is_read(tmp_path):
    (tmp_path / "counts").mkdir()
    assert latest_counts(tmp_path) is None
    header = "state,count,true_bonus,predicted_bonus\n"
    (tmp_path / "counts" / "step_000000900.csv").write_text(header + "0 0,1,1,1\n")
    (tmp_path / "counts" / "step_000001000.csv").write_text(header + "0 0,1,1,0.5\n2 -1,4,0.5,0.25\n")
    table = latest_counts(tmp_path)
    assert table.step == 1000
    assert table.states.tolist() == [[0, 0], [2, -1]]
    assert table.counts.tolist() == [1, 4]
    assert np.allclose(table.predicted_bonus, [0.5, 0.25])


def test_the_config_is_read_without_running_anything(tmp_path):
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "config.yaml").write_text("env:\n  size: 4\n")
    assert read_config(tmp_path) == {"env": {"size": 4}}
