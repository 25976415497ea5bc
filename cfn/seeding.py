"""Random number streams: one seed per run, and from it an independent stream for each consumer.

Streams are named rather than numbered in order of use, so a new consumer does not change the numbers of others. The
seed of an episode is a function of the run's seed, the environment and the episode, so it can always be recomputed.
Processes that only step environments import this module, and no PyTorch: they start sooner, and need less memory.
"""

import random
import sys
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

MERSENNE_WORDS = 624
"""Length of the state of NumPy's global generator, and so the largest valid position in it."""


def _sequence(seed: int, path: tuple[str | int, ...]) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=[zlib.crc32(p.encode()) if isinstance(p, str) else p for p in path])


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """Return the generator of a named stream, such as `generator(0, "agent", "explore")`."""
    return np.random.default_rng(_sequence(seed, path))


def integer(seed: int, *path: str | int) -> int:
    """Return an integer seed from a named stream, for an episode or for initial weights."""
    return int(_sequence(seed, path).generate_state(1)[0] >> 1)


def global_states(device: "torch.device") -> dict[str, Any]:
    """Return the states of the global generators of Python, NumPy and PyTorch."""
    import torch

    states = {"python": random.getstate(), "numpy": np.random.get_state(legacy=False), "torch": torch.get_rng_state()}
    return states | ({"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {})


def set_global_states(states: dict[str, Any], device: "torch.device") -> None:
    """Restore the states of the global generators."""
    import torch

    if not 0 <= states["numpy"]["state"]["pos"] <= MERSENNE_WORDS:  # NumPy would read outside its state
        raise ValueError("invalid state of NumPy's generator")
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)


def seed_everything(seed: int) -> None:
    """Seed the global generators: a user's layers and environments may draw from them."""
    import torch  # noqa: F401

    seed_imported(seed)


def seed_imported(seed: int) -> None:
    """Seed the global generators of Python and NumPy, and PyTorch's if this process has imported it."""
    random.seed(integer(seed, "python"))
    np.random.seed(integer(seed, "numpy"))
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(integer(seed, "torch"))
