"""Where PyTorch computes."""

import torch

from cfn.errors import UsageError

DEFAULT_THREADS = torch.get_num_threads()
"""CPU threads that PyTorch takes by itself."""


def choose(device: str) -> torch.device:
    """The device that a config names; `auto` takes a GPU if there is one."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        device = next(name for name, there in available.items() if there)
    if not available[device]:
        usable = " or ".join(f"device={name}" for name in ("auto", *(n for n, there in available.items() if there)))
        raise UsageError(f"device={device}: PyTorch finds no such device on this machine: use {usable}")
    return torch.device(device)
