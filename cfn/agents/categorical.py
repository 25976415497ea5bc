"""Categorical return distributions on a fixed support: C51 (Bellemare et al., 2017)."""

import torch
from torch import Tensor

from cfn.nn.device import send


class Support:
    """Support of the distributions: `atoms` returns, evenly spaced from `vmin` to `vmax`.

    Args:
        atoms: Number of atoms.
        vmin: Lowest return.
        vmax: Highest return.
        device: Device of the distributions.
    """

    def __init__(self, atoms: int, vmin: float, vmax: float, device: torch.device) -> None:
        self._vmin, self._vmax = vmin, vmax
        self.atoms = torch.linspace(vmin, vmax, atoms, device=device)
        # Targets are computed in double precision on the CPU, because some devices have single precision only.
        self._cpu_atoms = torch.linspace(vmin, vmax, atoms, dtype=torch.float64)

    def mean(self, logits: Tensor) -> Tensor:
        """Return the mean of each distribution (last dimension: atoms)."""
        return logits.softmax(dim=-1) @ self.atoms

    def shift(self, rewards: Tensor, discounts: Tensor) -> tuple[Tensor, Tensor]:
        """Return where reward + discount * atom lies on the support: the atom below, and the share of the one above.

        Args:
            rewards: Rewards of shape (batch,), on the CPU like the replay buffer.
            discounts: Discounts of shape (batch,), on the CPU.
        """
        last = len(self.atoms) - 1
        moved = (rewards[:, None] + discounts[:, None] * self._cpu_atoms).clamp(self._vmin, self._vmax)
        position = ((moved - self._vmin) * (last / (self._vmax - self._vmin))).clamp(0, last)
        below = position.floor()
        device = self.atoms.device
        return send(below.long(), device), send((position - below).to(self.atoms.dtype), device)

    def project(self, probabilities: Tensor, below: Tensor, upper_share: Tensor) -> Tensor:
        """Project shifted distributions onto the support: each probability is split between the two nearest atoms.

        Args:
            probabilities: Probabilities of shape (batch, atoms).
            below: Atom below each shifted atom, from `shift`.
            upper_share: Share of the atom above it, from `shift`.
        """
        above = (below + 1).clamp(max=len(self.atoms) - 1)
        projected = torch.zeros_like(probabilities)
        projected = projected.scatter_add(1, below, probabilities * (1 - upper_share))
        return projected.scatter_add(1, above, probabilities * upper_share)
