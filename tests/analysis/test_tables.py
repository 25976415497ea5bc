import csv
import io
import re

from folders import make_run

from cfn.analysis.grouping import group
from cfn.analysis.tables import as_csv, cells, markdown, rows, write_table
from cfn.runs.record import load_runs


def table(tmp_path, stat="mean"):
    return rows(group(load_runs([tmp_path])[0])[0], stat)


def test_a_row_has_the_statistics_of_its_seeds(tmp_path):
    make_run(tmp_path, seed=0, returns=(0, 0, 0), mse=(1, 1, 1))
    make_run(tmp_path, seed=1, returns=(0, 1, 1), mse=(1, 1, 1))
    (row,) = table(tmp_path)
    assert row[:6] == ("gridworld", "CFN", 2, 2, 300, 300)
    assert row.final.centre.tolist() == [0.5]
    assert (row.final.low.tolist(), row.final.high.tolist()) == ([0], [1])
    assert row.area.centre.tolist() == [0.375], "0, and 3/4 by trapezoids"
    assert (row.scored, row.speed, row.memory) == (1, 50.5, 501)


def test_of_how_many_seeds_and_steps_the_scores_are(tmp_path):
    make_run(tmp_path, seed=0, returns=(1, 1, 0), mse=(1, 1, 1))
    make_run(tmp_path, seed=1, returns=(1, 1), mse=(1, 1))
    unscored = make_run(tmp_path, seed=2, returns=(0,), mse=(1,))
    (unscored / "metrics.jsonl").write_text('{"step": 50, "bonus/mse": 1, "train/return": 0}\n')
    (row,) = found = table(tmp_path)
    assert row[2:6] == (3, 2, 50, 300)
    assert row.area.centre.tolist() == [1], "over the 200 steps that both have"
    assert cells(found)[0][2:4] == ("2 of 3", "50 to 300")
    assert next(csv.DictReader(io.StringIO(as_csv(found, "mean"))))["seeds_with_score"] == "2"
    write_table(group(load_runs([tmp_path])[0])[0], "iqm", tmp_path)
    assert "1 of 3 seeds have no evaluation yet." in (tmp_path / "table.md").read_text()


def test_who_never_scored(tmp_path):
    folder = make_run(tmp_path, returns=(0, 0))
    text = (folder / "metrics.jsonl").read_text().replace('"train/return": 1', '"train/return": 0')
    (folder / "metrics.jsonl").write_text(text)
    make_run(tmp_path, seed=1, returns=(0, 0))
    assert table(tmp_path)[0].scored == 0.5, "a goal in training counts"


def test_methods_are_compared_over_all_tasks_where_scores_are_chances(tmp_path):
    for env, score in (("fetch_push", 0), ("fetch_slide", 1)):
        for seed in (0, 1, 2):
            make_run(tmp_path, seed=seed, env=env, returns=(0, score))
    make_run(tmp_path, "rnd", env="fetch_push")
    found = table(tmp_path, "iqm")
    assert [(row.task, row.method) for row in found] == [
        ("fetch_push", "CFN"),
        ("fetch_push", "RND"),
        ("fetch_slide", "CFN"),
        ("all 2 tasks", "CFN"),
    ]
    assert [float(bound[0]) for bound in found[-1].final[:3]] == [0.5, 0.5, 0.5], "resampled within each task"
    make_run(tmp_path, env="pendulum", returns=(-1000, -200))
    assert not any(row.task.startswith("all") for row in table(tmp_path)), "there is no common scale"


def test_what_is_unknown_is_left_empty(tmp_path):
    folder = make_run(tmp_path)
    (folder / "metrics.jsonl").write_text('{"step": 5, "bonus/mse": 1}\n')
    (folder / "summary.json").unlink()
    found = table(tmp_path)
    assert cells(found) == [("gridworld", "CFN", "0 of 1", "5", "", "", "0%", "", "")]
    (line,) = csv.DictReader(io.StringIO(as_csv(found, "mean")))
    assert (line["final_score"], line["area_high"], line["memory_mb"], line["scored"]) == ("", "", "", "0")


def test_one_seed_has_no_interval(tmp_path):
    make_run(tmp_path, returns=(0, 0.5))
    found = table(tmp_path, "iqm")
    assert cells(found)[0][4] == "0.5"
    (line,) = csv.DictReader(io.StringIO(as_csv(found, "iqm")))
    assert (line["final_score"], line["final_score_low"], line["final_score_high"]) == ("0.5", "", "")
    assert line["stat"] == "iqm"


def test_training_is_not_compared_with_evaluations(tmp_path):
    make_run(tmp_path, returns=(0, 1))
    folder = make_run(tmp_path, "rnd")
    (folder / "metrics.jsonl").write_text('{"step": 10, "train/return": 5}\n')
    evaluated, other = table(tmp_path)
    assert evaluated.final.centre.tolist() == [1]
    assert other.final is None


def test_markdown_is_not_broken_by_a_name(tmp_path):
    make_run(tmp_path, "a|b")
    lines = markdown(table(tmp_path), "mean").splitlines()
    assert {line.count("|") for line in lines[:3]} == {10}
    assert lines[-1].startswith("Scores: mean and standard error over seeds; no interval for a single seed")


def test_the_tally_of_methods_is_below_the_table_and_in_a_file(tmp_path):
    for env in ("fetch_push", "fetch_slide"):
        for seed in (0, 1):
            make_run(tmp_path / "runs", seed=seed, env=env, returns=(1, 1))
            make_run(tmp_path / "runs", "rnd", seed=seed, env=env, returns=(0, 0))
    paths, text = write_table(group(load_runs([tmp_path / "runs"])[0])[0], "iqm", tmp_path)
    assert [path.name for path in paths] == ["table.md", "table.csv", "tally.csv"]
    assert text == (tmp_path / "table.md").read_text()
    assert "Memory: largest.\n\nScore: " in text
    assert ".\n\n| A | B | A ahead |" in text
    assert "| CFN | RND | 2 of 2 | 0 of 2 | 2 | 0 | 0 | 1 (1 to 1) |" in text
    assert (tmp_path / "tally.csv").read_text().splitlines()[1] == "CFN,RND,2,2,0,2,0,0,1,1,1"


def test_one_method_has_no_tally_and_too_many_are_told(tmp_path):
    make_run(tmp_path / "runs")
    paths, text = write_table(group(load_runs([tmp_path / "runs"])[0])[0], "iqm", tmp_path)
    assert [path.name for path in paths] == ["table.md", "table.csv"]
    assert "P(A > B)" not in text
    for scale in range(13):
        make_run(tmp_path / "many", config={"bonus.scale": scale})
    paths, text = write_table(group(load_runs([tmp_path / "many"])[0])[0], "iqm", tmp_path)
    assert len(paths) == 2
    assert text.endswith("No tally: there are 13 methods, more than 12; see cfn compare.\n")


def test_the_tables_and_the_tally_are_of_the_returns_asked_for(tmp_path):
    for bonus, score in (("cfn", 1), ("rnd", 0)):
        folder = make_run(tmp_path, bonus, returns=(score, score))
        text = (folder / "metrics.jsonl").read_text()
        text = re.sub(r'"train/return": \d', f'"train/return": {9 - score}', text)
        (folder / "metrics.jsonl").write_text(text)
    groups = group(load_runs([tmp_path])[0])[0]
    assert "| CFN | RND | 1 of 1 | 0 of 1 |" in write_table(groups, "mean", tmp_path)[1]
    assert "| CFN | RND | 0 of 1 | 1 of 1 |" in write_table(groups, "mean", tmp_path, "train")[1]
    assert [row.final.centre.tolist() for row in rows(groups, "mean", "train")] == [[8], [9]]


def test_large_numbers_are_written_out(tmp_path):
    make_run(tmp_path, returns=(2_500, 2_500))
    make_run(tmp_path, seed=1, returns=(3_500, 3_500))
    assert cells(table(tmp_path, "mean"))[0][4] == "3,000 (2,500 to 3,500)"
