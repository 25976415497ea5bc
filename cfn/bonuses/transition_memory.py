"""Replay buffer of one-step transitions for bonuses that learn from them, sampled uniformly."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch

from cfn import seeding
from cfn.errors import BadValueError
from cfn.nn import memory_limits
from cfn.nn.prefetch import Prefetcher
from cfn.replay.frames import FrameStore, shared_or_own
from cfn.replay.n_step import Transition
from cfn.replay.transitions import TransitionBatch, TransitionReplay
from cfn.types import Array


class TransitionMemory:
    """Stores the newest transitions (s, a, s', whether s' is terminal), and samples batches of them.

    Args:
        observation_space: Observations of one environment.
        action: Example of an action, for its shape and type.
        seed: Seed of the sampling.
        device: Device that trains on the batches.
        frames: Frame store shared with others; None creates one.
        steps: Upper bound on the steps of the run, if known.
        capacity: Maximum number of transitions.
        batch_size: Transitions per batch.
        min_size: Transitions before the first batch.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action: Array,
        seed: int,
        device: torch.device,
        frames: FrameStore | None,
        steps: int | None,
        capacity: int,
        batch_size: int,
        min_size: int,
    ) -> None:
        if capacity < max(batch_size, min_size):
            least = f"batch_size={batch_size} and min_size={min_size}"
            raise BadValueError("capacity", f"{capacity} transitions are fewer than {least} need: choose more")
        shape, dtype = observation_space.shape or (), observation_space.dtype
        entry = TransitionReplay.bytes_of(1, action, prioritize=False)
        self.full_bytes = memory_limits.require_buffer(capacity, entry, FrameStore.bytes_of(shape, dtype), steps)
        self._frames, owned = shared_or_own(frames, shape, dtype)
        self._replay = TransitionReplay(capacity, 1, self._frames, action, prioritize=False, owns_frames=owned)
        self._batch_size, self._min_size = batch_size, max(min_size, 1)
        self._rng = seeding.generator(seed, "transitions")
        self._batches = Prefetcher(self._draw, self._replay.as_batch, device)

    @property
    def ready(self) -> bool:
        """Whether there are enough transitions to learn from."""
        return len(self._replay) >= self._min_size

    def add(self, observations: Array, actions: Array, next_observations: Array, terminated: Array) -> None:
        """Add one transition per row."""
        for before, action, after, end in zip(observations, actions, next_observations, terminated, strict=True):
            state, next_state = (np.array([self._frames.put(frame)], np.int32) for frame in (before, after))
            self._replay.add(Transition(state, action, 0.0, 0.0 if end else 1.0, next_state))
            self._frames.release(next_state)  # the buffer holds a reference of its own

    def take(self) -> TransitionBatch:
        """Return the batch to train on; its discounts are 0 where s' is terminal, and 1 elsewhere."""
        return self._batches.take()

    def prepare(self) -> None:
        """Sample the next batch, if the device is working meanwhile."""
        self._batches.prepare()

    def _draw(self) -> TransitionBatch:
        return self._replay.sample(self._batch_size, self._rng)

    def state_dict(self) -> dict[str, Any]:
        return {
            "replay": self._replay.state_dict(),
            "batches": self._batches.state_dict(),
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._replay.load_state_dict(state["replay"])
        self._batches.load_state_dict(state["batches"])
        self._rng.bit_generator.state = state["rng"]
