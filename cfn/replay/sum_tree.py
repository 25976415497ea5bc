"""A sum tree: sampling in proportion to priorities, in logarithmic time, without Python per sample."""

import numba
import numpy as np

from cfn.types import Array


@numba.njit(cache=True)
def _set(tree: Array, leaves: int, indices: Array, priorities: Array) -> None:
    for i in range(len(indices)):
        node = indices[i] + leaves
        tree[node] = priorities[i]
        node >>= 1
        while node:
            # The sum of the children, not a difference added on the way: rounding errors cannot pile up.
            tree[node] = tree[2 * node] + tree[2 * node + 1]
            node >>= 1


@numba.njit(cache=True)
def _sample(tree: Array, leaves: int, fractions: Array, indices: Array) -> None:
    for i in range(len(fractions)):
        rest = fractions[i] * tree[1]
        node = 1
        while node < leaves:
            node *= 2
            # To the right, unless nothing is there (where rounding could otherwise lead to a leaf without priority).
            if rest >= tree[node] and tree[node + 1] > 0:
                rest -= tree[node]
                node += 1
        indices[i] = node - leaves


class SumTree:
    """Priorities of `capacity` entries, all 0 at first.

    Args:
        capacity: How many.
    """

    BYTES = 32
    """Of one entry at the most: its leaf and its share of the nodes, when the capacity is just above a power of 2."""

    def __init__(self, capacity: int) -> None:
        self._leaves = 1 << max(capacity - 1, 0).bit_length()
        self._tree = np.zeros(2 * self._leaves)

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return float(self._tree[1])

    def __getitem__(self, indices: Array) -> Array:
        priorities: Array = self._tree[np.asarray(indices) + self._leaves]
        return priorities

    def __setitem__(self, indices: Array, priorities: Array) -> None:
        _set(self._tree, self._leaves, indices, priorities)

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Draw `count` entries, each in proportion to its priority and independently of the others."""
        indices = np.empty(count, np.int64)
        _sample(self._tree, self._leaves, rng.random(count), indices)
        return indices

    def state_dict(self) -> dict[str, Array]:
        """The priorities."""
        return {"priorities": self._tree[self._leaves :].copy()}

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Take over the priorities."""
        self._tree[self._leaves :] = state["priorities"]
        for level in range(self._leaves.bit_length() - 2, -1, -1):
            nodes = np.arange(1 << level, 2 << level)
            self._tree[nodes] = self._tree[2 * nodes] + self._tree[2 * nodes + 1]
