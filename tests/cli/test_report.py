"""`cfn report`, within this process."""

from folders import make_run


def test_report_writes_one_file(call, tmp_path):
    make_run(tmp_path / "runs")
    code, out, err = call("report", "runs", "--out", "there/page.html", "--stat", "mean")
    assert (code, out, err) == (0, "there/page.html\n", "")
    assert "./../runs/gridworld/rainbow-cfn/0/seed%3D0/metrics.jsonl" in (tmp_path / "there" / "page.html").read_text()


def test_runs_of_any_kind_are_reported_together(call, tmp_path):
    make_run(tmp_path / "runs", config={"env.kwargs.a": 1}, overrides=["+env.kwargs.a=1"], tables=0)
    make_run(tmp_path / "runs", "rnd", config={"env.kwargs": {}}, tables=0)
    assert call("report", "runs") == (0, "report.html\n", "")
    page = (tmp_path / "report.html").read_text()
    assert "<b>CFN, env.kwargs.a=1</b>" in page
    assert "<b>RND</b>" in page


def test_runs_are_chosen_by_their_values(call, tmp_path):
    make_run(tmp_path / "runs", config={"bonus.scale": 0.1})
    make_run(tmp_path / "runs", seed=1, config={"bonus.scale": 0.5})
    call("report", "runs")
    assert "bonus.scale=0.5" in (tmp_path / "report.html").read_text()
    code, _, err = call("report", "runs", "--where", "bonus.scale=0.1")
    assert (code, err) == (0, "")
    assert "bonus.scale=0.5" not in (tmp_path / "report.html").read_text()
