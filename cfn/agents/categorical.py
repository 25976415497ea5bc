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

    def project(self, probabilities: Tensor, rewards: Tensor, discounts: Tensor) -> Tensor:
        """Project the distribution of reward + discount * Z onto the support, where Z has the given `probabilities`.

        Each atom is shifted and clipped to the support. Its probability is split between the two nearest atoms, with
        more for the nearer one.

        Args:
            probabilities: Probabilities of shape (batch, atoms).
            rewards: Rewards of shape (batch,), on the CPU like the replay buffer.
            discounts: Discounts of shape (batch,), on the CPU.
        """
        last = len(self.atoms) - 1
        moved = (rewards[:, None] + discounts[:, None] * self._cpu_atoms).clamp(self._vmin, self._vmax)
        position = ((moved - self._vmin) * (last / (self._vmax - self._vmin))).clamp(0, last)
        below = position.floor()
        upper_share = send((position - below).to(probabilities.dtype), probabilities.device)
        index = send(below.long(), probabilities.device)
        projected = torch.zeros_like(probabilities)
        projected.scatter_add_(1, index, probabilities * (1 - upper_share))
        projected.scatter_add_(1, (index + 1).clamp(max=last), probabilities * upper_share)
        return projected
