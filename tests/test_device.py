import pytest
import torch

from cfn import device
from cfn.errors import UsageError


def test_the_cpu_is_always_there():
    assert device.choose("cpu") == torch.device("cpu")


def test_auto_takes_what_there_is(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device.choose("auto") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device.choose("auto") == torch.device("cuda")


def test_a_missing_gpu_is_told_with_what_would_be_right(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match=r"device=cuda: .* use device=auto or device=cpu"):
        device.choose("cuda")
