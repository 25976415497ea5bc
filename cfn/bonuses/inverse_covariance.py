"""Inverse covariance of the features of an episode, updated by one row at a time."""

from typing import Any

import numpy as np

from cfn.types import Array


class InverseCovariance:
    """M = (ridge I + sum of h h')^(-1) over the features h of the current episode, for each environment.

    Args:
        num_envs: Number of environments.
        size: Number of features.
        ridge: Factor on the identity.
    """

    def __init__(self, num_envs: int, size: int, ridge: float) -> None:
        self._start = np.eye(size) / ridge
        self._inverse = np.stack([self._start] * num_envs)

    def clear(self, begins: Array) -> None:
        """Reset the matrices of environments in which a new episode begins."""
        self._inverse[np.flatnonzero(begins)] = self._start

    def visit(self, features: Array) -> Array:
        """Return h'Mh of each environment's features, and then add them to its episode (Sherman and Morrison)."""
        rows = features.astype(np.float64)
        products = np.einsum("eij,ej->ei", self._inverse, rows)
        norms: Array = (rows * products).sum(axis=1)
        for inverse, product, norm in zip(self._inverse, products, norms, strict=True):
            inverse -= np.outer(product, product / (1 + norm))
        return norms

    def state_dict(self) -> dict[str, Any]:
        return {"inverse": self._inverse}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["inverse"].shape != self._inverse.shape:
            raise ValueError("the inverse covariances have another shape")
        self._inverse = state["inverse"].copy()
