"""Work of the CPU while the device computes: the next batch is sampled, results of the last one are written back."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from cfn.nn import device as devices
from cfn.types import Array

Batch = TypeVar("Batch", bound=tuple[Any, ...])


class Prefetcher(Generic[Batch]):
    """Source of training batches.

    On a CPU a batch is sampled when it is needed. On an asynchronous device batch k + 1 is sampled during update k,
    after all work of the update is queued, and the new priorities of batch k are written when batch k + 1 is taken. It
    therefore differs from sampling in plain order: the priorities of batch k are not updated yet, entries added between
    the two updates cannot be sampled yet, and a generator shared with other draws, such as coin flips, is used in
    another order. A batch sampled ahead is part of the state, so a resumed run trains on the same batch.

    Args:
        sample: Function that samples a batch, a named tuple whose fields are saved.
        rebuild: Function that makes a batch from saved fields, or raises `ValueError`.
        device: Device that trains on the batches.
    """

    def __init__(self, sample: Callable[[], Batch], rebuild: Callable[..., Batch], device: torch.device) -> None:
        self._sample, self._rebuild, self._ahead = sample, rebuild, devices.asynchronous(device)
        self._next: Batch | None = None
        self._finish: Callable[[], None] | None = None

    def take(self) -> Batch:
        """Return the batch to train on now."""
        self.settle()
        batch, self._next = self._next, None
        return self._sample() if batch is None else batch

    def prepare(self) -> None:
        """Sample the next batch, if the device is working meanwhile."""
        if self._ahead:
            self._next = self._sample()

    def write_back(self, write: Callable[[Array], None], values: Tensor) -> None:
        """Pass values of an update, such as priorities, to `write`; on an asynchronous device, before the next update.

        Args:
            write: Function that stores the values.
            values: Tensor on the device.
        """
        arrive = devices.fetch_later(values)
        self._finish = lambda: write(*arrive())
        if not self._ahead:
            self.settle()

    def settle(self) -> None:
        """Write what is not written back yet. Call it before the replay buffer is saved."""
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()

    def state_dict(self) -> list[Any]:
        return list(self._next or ())

    def load_state_dict(self, state: list[Any]) -> None:
        self._next, self._finish = self._rebuild(*state) if state else None, None
