"""Benchmarks have two modes: `pytest --bench` measures at full size; otherwise tiny sizes show that they still run."""

import json
import os
import platform
from pathlib import Path

import pytest
import torch


def pytest_collection_modifyitems(config, items):
    """Mark the benchmarks: full size is left out of the usual tests, a smoke test is left out of `nox -s fast`."""
    marker = "bench" if config.getoption("--bench") else "thorough"
    for item in items:
        if "bench" in item.path.parts:
            item.add_marker(marker)


class Bench:
    """Sizes, thresholds and results of a benchmark.

    Args:
        full: Whether to measure at full size.
        name: Name of the test.
        results: Results of all benchmarks of the session, by name.
    """

    def __init__(self, full, name, results):
        self.full, self._name, self._results = full, name, results

    def size(self, full, smoke):
        """Choose a size."""
        return full if self.full else smoke

    def report(self, text, **numbers):
        """Print a result and keep its numbers for bench.json."""
        print(f"\n{text}")
        self._results.setdefault(self._name, []).append({"text": text, **numbers})

    def require(self, condition, sentence=""):
        """Fail if a threshold is missed; tiny sizes have no thresholds."""
        assert condition or not self.full, sentence


@pytest.fixture(scope="session")
def bench_results(pytestconfig):
    results = {}
    yield results
    if not (pytestconfig.getoption("--bench") and results):
        return
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "unknown")
    machine = {
        "cores": os.cpu_count(),
        "processor": model,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    Path("bench.json").write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")
    rows = [f"| {name} | {one['text']} |" for name, found in results.items() for one in found]
    print(
        "\n".join(["", f"{machine}", "", "| benchmark | result |", "| --- | --- |", *rows, "", "written to bench.json"])
    )


@pytest.fixture(scope="session")
def full(pytestconfig):
    """Whether benchmarks have their full size."""
    return pytestconfig.getoption("--bench")


@pytest.fixture
def bench(full, request, bench_results):
    return Bench(full, request.node.name, bench_results)


@pytest.fixture(params=[1, 2])
def threads(request):
    """Number of PyTorch's threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)
