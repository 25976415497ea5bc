"""Quadratic forms v'(r I + sum of u u')^-1 v of a growing set of vectors u, accurate after millions of them.

Updating the inverse itself (Sherman-Morrison) in single precision fails: directions that were never added keep the
entry 1 / r, whose rounding error is as large as the form of a vector that was added often. Here the Gram matrix
P = r I + sum of u u' is kept in double precision, and the inverse as a root R with R'R = P^-1 in single precision, so
that a form is the sum of squares |R v|^2 without cancellation. Vectors wait in a block. They act at once, as
Sherman-Morrison steps that are stored as the rows of a thin matrix Q, in double precision:

    v' A v = |y|^2 - |Q y|^2,  y = R v.

When the block is full, it is added to P and R is computed again, which bounds the rounding errors for ever.
"""

from typing import Any

import numpy as np
from scipy.linalg import lapack

from cfn.types import Array

MIN_BLOCK, MAX_BLOCK = 64, 512
"""Bounds of the vectors per block, which is otherwise a quarter of the dimension."""


class InverseGram:
    """Forms of the inverse of r I + sum of u u'.

    Args:
        size: Dimension of the vectors.
        ridge: r, which makes the matrix invertible.
    """

    def __init__(self, size: int, ridge: float) -> None:
        block = min(max(size // 4, MIN_BLOCK), MAX_BLOCK)
        self._gram = ridge * np.eye(size)
        self._factor()  # as after loading, so that a resumed run has the same root to the last digit
        self._waiting = np.zeros((block, size), np.float32)
        self._directions = np.zeros((block, size))
        self._count = 0  # vectors that wait

    @staticmethod
    def bytes_of(size: int) -> int:
        """Return the bytes of the matrices for vectors of this dimension."""
        return 12 * size**2 + 12 * size * MAX_BLOCK

    def forms(self, vectors: Array) -> Array:
        """Return v'Av of each row v."""
        y = (vectors @ self._root.T).astype(np.float64)
        overlaps = y @ self._directions[: self._count].T
        forms: Array = np.square(y).sum(axis=1) - np.square(overlaps).sum(axis=1)
        return np.maximum(forms, 0.0)  # rounding may give less

    def add(self, vectors: Array) -> Array:
        """Add rows one after the other; return f = v'Av of each before it is added. Afterwards it is f / (1 + f)."""
        forms = np.zeros(len(vectors))
        for row, vector in enumerate(vectors):
            y = (self._root @ vector).astype(np.float64)
            used = self._directions[: self._count]
            overlaps = used @ y
            forms[row] = max(y @ y - overlaps @ overlaps, 0.0)
            self._directions[self._count] = (y - overlaps @ used) / (1 + forms[row]) ** 0.5
            self._waiting[self._count] = vector
            self._count += 1
            if self._count == len(self._waiting):
                self._merge()
        return forms

    def _merge(self) -> None:
        """Add the block to the Gram matrix, and compute the root again."""
        block = self._waiting.astype(np.float64)
        self._gram += block.T @ block
        self._count = 0
        self._factor()

    def _factor(self) -> None:
        lower, failed = lapack.dpotrf(self._gram, lower=1)
        if failed:
            raise ValueError("the Gram matrix is not positive definite: choose a larger bonus.ridge")
        inverse, _ = lapack.dtrtri(lower, lower=1)
        self._root = np.tril(inverse).astype(np.float32)

    def state_dict(self) -> dict[str, Any]:
        used = slice(0, self._count)
        return {"gram": self._gram, "waiting": self._waiting[used], "directions": self._directions[used]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        shape, count = state["gram"].shape, len(state["waiting"])
        if shape != self._gram.shape or not count == len(state["directions"]) < len(self._waiting):
            raise ValueError("the Gram matrix has the wrong shape for bonus.features")
        self._gram, self._count = state["gram"].copy(), count
        self._waiting[:count], self._directions[:count] = state["waiting"], state["directions"]
        self._factor()
