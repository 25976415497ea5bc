"""Random numbers: one seed per run, and from it a stream of its own for everything that draws.

Streams are named, not numbered in the order of use, so a new consumer never shifts another one's numbers; and an
episode's seed is a function of the run's seed, the environment and the episode, so it can be had again at any time.
"""

import random
import zlib
from typing import Any

import numpy as np
import torch

MERSENNE_WORDS = 624
"""Numbers that NumPy's global generator makes at once; its state says how many of them were taken."""


def _sequence(seed: int, path: tuple[str | int, ...]) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=[zlib.crc32(p.encode()) if isinstance(p, str) else p for p in path])


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """The generator of the stream that `path` names, such as `generator(0, "agent", "explore")`."""
    return np.random.default_rng(_sequence(seed, path))


def integer(seed: int, *path: str | int) -> int:
    """A seed for something that takes an integer: an environment's episode, a network's initial weights."""
    return int(_sequence(seed, path).generate_state(1)[0] >> 1)


def global_states(device: torch.device) -> dict[str, Any]:
    """The states of the generators that belong to nobody: Python's, NumPy's and PyTorch's."""
    states = {"python": random.getstate(), "numpy": np.random.get_state(legacy=False), "torch": torch.get_rng_state()}
    return states | ({"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {})


def set_global_states(states: dict[str, Any], device: torch.device) -> None:
    """Take over the states of those generators."""
    if not 0 <= states["numpy"]["state"]["pos"] <= MERSENNE_WORDS:  # NumPy would read whatever lies there
        raise ValueError("the state of NumPy's generator is none")
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)


def seed_everything(seed: int) -> None:
    """Seed the generators that belong to nobody: layers and environments of somebody's own may draw from them."""
    random.seed(integer(seed, "python"))
    np.random.seed(integer(seed, "numpy"))
    torch.manual_seed(integer(seed, "torch"))
