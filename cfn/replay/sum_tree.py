"""A sum tree: sampling in proportion to priorities, in logarithmic time, without Python per sample."""

import numba
import numpy as np

from cfn.types import Array


@numba.njit(cache=True)
def _set(tree: Array, leaves: int, capacity: int, indices: Array, priorities: Array) -> None:
    if len(indices) != len(priorities):
        raise IndexError("each entry has one priority")
    for index in indices:
        if not 0 <= index < capacity:  # here nobody else looks: what is beyond the tree belongs to others
            raise IndexError("there is no such entry")
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
        self._capacity, self._leaves = capacity, 1 << max(capacity - 1, 0).bit_length()
        self._tree = np.zeros(2 * self._leaves)

    def __getitem__(self, indices: Array) -> Array:
        priorities: Array = self._tree[np.asarray(indices) + self._leaves]
        return priorities

    def __setitem__(self, indices: Array, priorities: Array) -> None:
        _set(self._tree, self._leaves, self._capacity, indices, priorities)

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Draw `count` entries, each in proportion to its priority and independently of the others."""
        indices = np.empty(count, np.int64)
        _sample(self._tree, self._leaves, rng.random(count), indices)
        return indices

    def state_dict(self, size: int) -> dict[str, Array]:
        """The priorities of the first `size` entries; the others have none."""
        return {"priorities": self._tree[self._leaves : self._leaves + size]}

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Take over the priorities."""
        priorities = state["priorities"]
        self._tree = np.zeros(2 * self._leaves)  # what has no priority is not touched, and takes no memory
        self._tree[self._leaves : self._leaves + len(priorities)] = priorities
        first, used = self._leaves, len(priorities)
        while first > 1:
            used = -(-used // 2)
            below = self._tree[first : first + 2 * used]
            first //= 2
            self._tree[first : first + used] = below[::2] + below[1::2]
