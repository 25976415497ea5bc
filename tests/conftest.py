"""What several tests share."""

import os
import subprocess

import pytest
import torch
from command import CFN


@pytest.fixture(autouse=True)
def nobody_is_logged_in(monkeypatch, tmp_path_factory):
    """W&B finds no account and keeps its own files in a folder that goes away."""
    home = tmp_path_factory.mktemp("wandb-home")
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    for name in ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("NETRC", str(home / "netrc"))
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)


@pytest.fixture(autouse=True)
def threads_stay():
    """A run within this process chooses PyTorch's threads, for itself alone."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def cfn(tmp_path):
    """Run the command in an empty folder: `cfn("train", "steps=100")` gives the finished process."""

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


@pytest.fixture
def run_folders(tmp_path):
    """The folders of the runs below the test's own."""
    return lambda: sorted(path.parent for path in tmp_path.rglob("metrics.jsonl"))
