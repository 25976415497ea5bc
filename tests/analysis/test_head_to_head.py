import pytest
from folders import make_run

from cfn.analysis.head_to_head import as_markdown, head_to_head
from cfn.analysis.sides import Side, match
from cfn.runs.record import load_runs


def compared(root, metric=None):
    sides = [Side(name, name, "", load_runs([root / name])[0]) for name in "AB"]
    return head_to_head(match(*sides, pool=False)[0], "eval", metric)


def test_scores_are_averaged_over_steps_and_metrics_taken_at_their_end(tmp_path):
    make_run(tmp_path / "A", returns=(0, 4, 8), mse=(0, 0, 0))
    make_run(tmp_path / "B", "rnd", returns=(0, 2), mse=(0, 0))
    (row,) = compared(tmp_path).rows
    assert (row.steps, row.means) == (200, (2, 1)), "up to step 200, by trapezoids"
    (row,) = compared(tmp_path, "eval/return").rows
    assert (row.steps, row.means) == (200, (4, 2)), "at step 200"


def test_differences_in_length_of_less_than_a_hundredth_are_not_told(tmp_path):
    make_run(tmp_path / "A", returns=(0,), mse=(0,), every=1000)
    make_run(tmp_path / "B", "rnd", returns=(0,), mse=(0,), every=991)
    assert compared(tmp_path).problems == [
        "gridworld: the runs have no steps in common; the numbers are of different steps"
    ]
    for name, bonus, last in (("A", "cfn", 1000), ("B", "rnd", 991)):
        folder = make_run(tmp_path / "near" / name, bonus)
        rows = "".join(f'{{"step": {step}, "eval/return": 1}}\n' for step in (500, last))
        (folder / "metrics.jsonl").write_text(rows)
    result = compared(tmp_path / "near")
    assert (result.problems, result.rows[0].steps) == ([], 991)


def test_numbers_that_are_too_long_or_too_small_to_read(tmp_path):
    for seed in range(30):
        make_run(tmp_path / "A", seed=seed, returns=(1, 1), tables=0)
        make_run(tmp_path / "B", "rnd", seed=seed, returns=(0, 0), tables=0)
    result = compared(tmp_path)
    # One of the C(60, 30) = 1.18e17 equally likely assignments, and its mirror image.
    assert result.rows[0].test.p == pytest.approx(2 / 118264581564861424, rel=1e-9)
    text = as_markdown(result, ("a", "b"))
    assert text.splitlines()[5].endswith("| 1 (1 to 1) | 1 (1 to 1) | 900 | < 1e-16 |")
    assert "too narrow" not in text, "30 seeds are enough"


def test_a_side_with_other_keys_on_each_task_is_named_by_the_first_few(tmp_path):
    for number in range(5):
        make_run(tmp_path / "A", env=f"task{number}", config={"bonus.scale": number + 1})
        make_run(tmp_path / "B", env=f"task{number}", config={"bonus.scale": 9})
    result = compared(tmp_path)
    assert result.labels[0] == "CFN, bonus.scale=1; CFN, bonus.scale=2; CFN, bonus.scale=3; ..."
    assert result.labels[1] == "CFN, bonus.scale=9"
