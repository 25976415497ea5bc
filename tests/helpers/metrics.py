"""Reading the metrics of a run."""

import json


def rows(folder, times=False):
    """The rows of `metrics.jsonl`, by default without what depends on the clock."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if times or not k.startswith("speed/")} for line in lines]
