"""Random numbers: one seed per run, and from it a stream of its own for everything that draws.

Streams are named, not numbered in the order of use, so a new consumer never shifts another one's numbers; and an
episode's seed is a function of the run's seed, the environment and the episode, so it can be had again at any time.
"""

import zlib

import numpy as np
import torch


def _sequence(seed: int, path: tuple[str | int, ...]) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=[zlib.crc32(p.encode()) if isinstance(p, str) else p for p in path])


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """The generator of the stream that `path` names, such as `generator(0, "agent", "explore")`."""
    return np.random.default_rng(_sequence(seed, path))


def integer(seed: int, *path: str | int) -> int:
    """A seed for something that takes an integer: an environment's episode, a network's initial weights."""
    return int(_sequence(seed, path).generate_state(1)[0] >> 1)


def seed_everything(seed: int) -> None:
    """Seed PyTorch's global generator, from which layers draw their initial weights."""
    torch.manual_seed(integer(seed, "torch"))
