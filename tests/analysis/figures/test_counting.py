"""All runs of a figure are counted alike, and the caption says how."""

import json

import numpy as np
import pytest
from folders import make_run

from cfn.analysis.figures.counting import count_alike, count_errors, leave_out
from cfn.analysis.grouping import group
from cfn.runs.reading import CountTable
from cfn.runs.record import load_runs


def with_errors(root, visits, arrivals=(), bonus="cfn", seed=0):
    """A run with these errors at steps 100, 200, ...; `arrivals` may be shorter: those of the last steps."""
    folder = make_run(root, bonus, seed, tables=0)
    rows = [{"step": 100 * (i + 1), "bonus/mse": v, "bonus/floor_mse": 0.01} for i, v in enumerate(visits)]
    for row, error in zip(rows[len(rows) - len(arrivals) :], arrivals, strict=True):
        row["bonus/arrival_mse"] = error
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def errors_of(root, *arguments):
    groups = group(load_runs([root])[0])[0]
    errors = count_errors(groups, *arguments)
    return errors, [series.values for one in groups for series in errors.of(one.runs)]


def test_the_root_is_taken_of_each_run_and_then_smoothed(tmp_path):
    """Figure 3: roots 0.6, 0.4, 0.2; the mean of the last two of them."""
    with_errors(tmp_path, (0.09, 0.09, 0.09), (0.36, 0.16, 0.04))
    errors, (values,) = errors_of(tmp_path, "rmse", "arrivals", 2)
    assert values == pytest.approx([0.6, 0.5, 0.3])
    (floor,) = errors.floor(group(load_runs([tmp_path])[0])[0][0].runs)
    assert floor.values == pytest.approx([0.1, 0.1, 0.1])
    assert errors.description == (
        "root mean squared error over states arrived in (floor: over visited states), "
        "averaged over the last 2 evaluations"
    )


def test_by_default_errors_are_mean_squares_over_visits(tmp_path):
    with_errors(tmp_path, (0.09, 0.04), (0.36, 0.16))
    errors, (values,) = errors_of(tmp_path, "mse", "visits", 1)
    assert values.tolist() == [0.09, 0.04]
    assert errors.description == "mean squared error over visited states"


@pytest.mark.parametrize("arrivals", [(), (0.16,)])
def test_a_run_of_an_older_version_makes_all_count_visits(tmp_path, arrivals):
    """It has no arrivals, or it was begun without them and resumed with them."""
    with_errors(tmp_path, (0.09, 0.04), (0.36, 0.16))
    with_errors(tmp_path, (0.25, 0.01), arrivals, seed=1)
    errors, values = errors_of(tmp_path, "mse", "arrivals", 1)
    assert [one.tolist() for one in values] == [[0.09, 0.04], [0.25, 0.01]]
    assert errors.description == "mean squared error over visited states (not all runs counted arrivals)"


def table(counts, arrivals=None):
    states = np.array([[i, i] for i in range(len(counts))])
    numbers = np.array(counts, float)
    made = CountTable(7, states, numbers, numbers**-0.5, numbers)
    return made if arrivals is None else made._replace(arrived=table(arrivals))


def test_tables_are_counted_by_arrivals_if_all_have_them():
    new, old = table([4, 1], [1, 4]), table([9, 1])
    tables, text = count_alike([[new], [new, new]], "arrivals")
    assert [[one.counts.tolist() for one in some] for some in tables] == [[[1, 4]], [[1, 4]] * 2]
    assert text == "N(s): arrivals in s"
    tables, text = count_alike([[new], [old]], "arrivals")
    assert [[one.counts.tolist() for one in some] for some in tables] == [[[4, 1]], [[9, 1]]]
    assert text == "N(s): actions taken in s (not all runs counted arrivals)"
    assert count_alike([[new], []], "visits") == ([[new], []], "N(s): actions taken in s")


def test_a_state_is_left_out_of_both_counts():
    rest = leave_out(table([4, 1, 9], [1, 4, 16]), (1, 1))
    assert (rest.states.tolist(), rest.counts.tolist()) == ([[0, 0], [2, 2]], [4, 9])
    assert rest.arrived.counts.tolist() == [1, 16]
    assert leave_out(table([4, 1]), (1, 1, 1)).counts.tolist() == [4, 1], "states of another kind"
