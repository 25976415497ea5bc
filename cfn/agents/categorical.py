"""Categorical return distributions on a fixed support: C51 (Bellemare et al., 2017)."""

import numba
import numpy as np
import torch
from torch import Tensor

from cfn.nn.device import send
from cfn.types import Array


@numba.njit(cache=True)
def _shift(
    rewards: Array, discounts: Array, atoms: Array, vmin: float, vmax: float, below: Array, share: Array
) -> None:
    """Write where each shifted atom lies on the support; one pass, where array operations would need ten."""
    last = len(atoms) - 1
    per_unit = last / (vmax - vmin)
    for i in range(len(rewards)):
        for j in range(len(atoms)):
            moved = min(max(rewards[i] + discounts[i] * atoms[j], vmin), vmax)
            position = min(max((moved - vmin) * per_unit, 0.0), float(last))
            floor = np.floor(position)
            below[i, j], share[i, j] = int(floor), position - floor


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
        self._cpu_atoms = torch.linspace(vmin, vmax, atoms, dtype=torch.float64).numpy()

    def mean(self, logits: Tensor) -> Tensor:
        """Return the mean of each distribution (last dimension: atoms)."""
        return logits.softmax(dim=-1) @ self.atoms

    def shift(self, rewards: Tensor, discounts: Tensor) -> tuple[Tensor, Tensor]:
        """Return where reward + discount * atom lies on the support: the atom below, and the share of the one above.

        Args:
            rewards: Rewards of shape (batch,), on the CPU like the replay buffer.
            discounts: Discounts of shape (batch,), on the CPU.
        """
        size, device = (len(rewards), len(self.atoms)), self.atoms.device
        below, share = np.empty(size, np.int64), np.empty(size, np.float32)
        _shift(rewards.numpy(), discounts.numpy(), self._cpu_atoms, self._vmin, self._vmax, below, share)
        return send(torch.from_numpy(below), device), send(torch.from_numpy(share), device)

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
