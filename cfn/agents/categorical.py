"""Distributions of returns on a fixed support: C51 (Bellemare et al., 2017)."""

import torch
from torch import Tensor

from cfn.device import send


class Support:
    """`atoms` returns, evenly spaced from `vmin` to `vmax`.

    Args:
        atoms: How many.
        vmin: The lowest.
        vmax: The highest.
        device: Where to compute.
    """

    def __init__(self, atoms: int, vmin: float, vmax: float, device: torch.device) -> None:
        self._vmin, self._vmax = vmin, vmax
        self.atoms = torch.linspace(vmin, vmax, atoms, device=device)
        # In double precision, on the CPU: not all devices have it.
        self._places = torch.linspace(vmin, vmax, atoms, dtype=torch.float64)

    def mean(self, logits: Tensor) -> Tensor:
        """The expected return of each distribution (last dimension: atoms)."""
        return logits.softmax(dim=-1) @ self.atoms

    def project(self, probabilities: Tensor, rewards: Tensor, discounts: Tensor) -> Tensor:
        """The distribution of reward + discount * Z on the support, Z having `probabilities`.

        Each atom moves, is clipped to the support, and is shared by its two neighbours in proportion to nearness.

        Args:
            probabilities: (batch, atoms).
            rewards: (batch,), on the CPU, where replay buffers are.
            discounts: (batch,), likewise.
        """
        last = len(self.atoms) - 1
        moved = (rewards[:, None] + discounts[:, None] * self._places).clamp(self._vmin, self._vmax)
        position = ((moved - self._vmin) * (last / (self._vmax - self._vmin))).clamp(0, last)
        below = position.floor()
        share = send((position - below).to(probabilities.dtype), probabilities.device)  # of the upper neighbour
        index = send(below.long(), probabilities.device)
        projected = torch.zeros_like(probabilities)
        projected.scatter_add_(1, index, probabilities * (1 - share))
        projected.scatter_add_(1, (index + 1).clamp(max=last), probabilities * share)
        return projected
