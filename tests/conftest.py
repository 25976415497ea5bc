"""Fixtures that several tests share."""

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from command import CFN

torch.set_num_threads(1)  # tests run in parallel: threads of two workers would compete for the cores


def pytest_addoption(parser):
    """Offer `--bench`: benchmarks at full size."""
    parser.addoption("--bench", action="store_true", help="run benchmarks at full size, with their thresholds")


def pytest_collection_modifyitems(items):
    """Mark the tests that start processes, which `nox -s fast` leaves out."""
    for item in items:
        folders = item.path.relative_to(Path(__file__).parent).parts  # the checkout may have any name
        if "slurm" in folders:
            item.add_marker("slurm")
        if "e2e" in folders or "cfn" in item.fixturenames:
            item.add_marker("process")


@pytest.fixture(autouse=True)
def nobody_is_logged_in(monkeypatch, tmp_path_factory):
    """W&B finds no account and keeps its own files in a folder that goes away."""
    home = tmp_path_factory.mktemp("wandb-home")
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    for name in ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("NETRC", str(home / "netrc"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # of commands
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)


@pytest.fixture(autouse=True)
def threads_stay():
    """A run within this process sets PyTorch's threads; the next test starts with one again."""
    yield
    torch.set_num_threads(1)


@pytest.fixture
def cfn(tmp_path):
    """Run a command in an empty folder, as a process: `cfn("train", "steps=100")` returns the finished process."""

    def run(*arguments, timeout=600, **environment):
        return subprocess.run(
            [str(CFN), *arguments],
            cwd=tmp_path,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )

    return run


class Done(NamedTuple):
    """Exit code and output of a command."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder, within this process: as `cfn`, but seconds faster."""
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.singleton import Singleton

    from cfn.cli.main import main

    monkeypatch.chdir(tmp_path)
    hydra, root, modules = Singleton.get_state(), logging.getLogger(), set(sys.modules)
    handlers, level = list(root.handlers), root.level

    def run(*arguments):
        GlobalHydra.instance().clear()
        monkeypatch.setattr(sys, "argv", ["cfn", *map(str, arguments)])
        os.environ.pop("HYDRA_FULL_ERROR", None)  # which `cfn train` sets
        capsys.readouterr()
        try:
            code = main()
        except SystemExit as exit:
            code = exit.code or 0
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Done(code, said.out, said.err)

    yield run
    Singleton.set_state(hydra)
    for handler in set(root.handlers) - set(handlers):
        handler.close()
    root.handlers[:], root.level = handlers, level
    for name in set(sys.modules) - modules:  # a user's own module of one test is not that of the next
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def run_folders(tmp_path):
    """The folders of the runs below the test's own."""
    return lambda: sorted(path.parent for path in tmp_path.rglob("metrics.jsonl"))
