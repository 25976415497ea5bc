import json

import pytest

from cfn.errors import UsageError
from cfn.runs.folder import Run
from cfn.tracking.metrics_file import MetricsFile


def test_each_moment_is_a_line_at_once(tmp_path):
    run = Run(tmp_path, "e", "a", "b", 0, "s", {"steps": 10})
    file = MetricsFile(run)
    file.log(1, {"a": 0.1, "b": 2})
    file.log(3, {"a": 1 / 3})
    rows = [json.loads(line) for line in run.files.metrics.read_text().splitlines()]
    assert rows == [{"step": 1, "a": 0.1, "b": 2}, {"step": 3, "a": 1 / 3}], "before the file is closed, and exactly"
    assert file.latest == {"a": 1 / 3, "b": 2}
    file.finish()


@pytest.mark.parametrize("line", ["5", "null", "[1, 2]", '"text"', "half", "[" * 100_000])
def test_a_line_that_no_run_writes_is_a_sentence(tmp_path, line):
    run = Run(tmp_path, "e", "a", "b", 0, "s", {"steps": 10})
    run.files.metrics.write_text('{"step": 1}\n' + line + "\n")
    with pytest.raises(UsageError, match="has a line that is not a JSON object"):
        MetricsFile(run)
