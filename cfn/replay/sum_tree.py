"""Sum tree: samples in proportion to priorities in logarithmic time, compiled with Numba."""

import numba
import numpy as np

from cfn.types import Array


@numba.njit(cache=True)
def _set(tree: Array, leaves: int, capacity: int, indices: Array, priorities: Array) -> None:
    if len(indices) != len(priorities):
        raise IndexError("the numbers of entries and priorities differ")
    for index in indices:
        if not 0 <= index < capacity:  # compiled code does not check bounds and would write into foreign memory
            raise IndexError("a sum tree's entry is out of range")
    for i in range(len(indices)):
        node = indices[i] + leaves
        tree[node] = priorities[i]
        node >>= 1
        while node:
            # Adding the children, instead of the change to the leaf, keeps rounding errors from accumulating.
            tree[node] = tree[2 * node] + tree[2 * node + 1]
            node >>= 1


@numba.njit(cache=True)
def _sample(tree: Array, leaves: int, fractions: Array, indices: Array) -> None:
    for i in range(len(fractions)):
        rest = fractions[i] * tree[1]
        node = 1
        while node < leaves:
            node *= 2
            # Never enter a right subtree without priorities, to which rounding could lead.
            if rest >= tree[node] and tree[node + 1] > 0:
                rest -= tree[node]
                node += 1
        indices[i] = node - leaves


class SumTree:
    """Priorities of `capacity` entries, initially 0.

    Args:
        capacity: Number of entries.
    """

    BYTES = 32
    """Maximum bytes per entry, leaf and inner nodes: reached if the capacity is just above a power of 2."""

    def __init__(self, capacity: int) -> None:
        self._capacity, self._leaves = capacity, 1 << max(capacity - 1, 0).bit_length()
        self._tree = np.zeros(2 * self._leaves)

    def __getitem__(self, indices: Array) -> Array:
        priorities: Array = self._tree[np.asarray(indices) + self._leaves]
        return priorities

    def __setitem__(self, indices: Array, priorities: Array) -> None:
        _set(self._tree, self._leaves, self._capacity, indices, priorities)

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Sample `count` entries independently, each with a probability proportional to its priority."""
        indices = np.empty(count, np.int64)
        _sample(self._tree, self._leaves, rng.random(count), indices)
        return indices

    def state_dict(self, size: int) -> dict[str, Array]:
        """Return the priorities of the first `size` entries; all others must be 0."""
        return {"priorities": self._tree[self._leaves : self._leaves + size]}

    def load_state_dict(self, state: dict[str, Array]) -> None:
        priorities = state["priorities"]
        self._tree = np.zeros(2 * self._leaves)  # untouched pages of zeros take no memory
        self._tree[self._leaves : self._leaves + len(priorities)] = priorities
        first, used = self._leaves, len(priorities)
        while first > 1:
            used = -(-used // 2)
            below = self._tree[first : first + 2 * used]
            first //= 2
            self._tree[first : first + used] = below[::2] + below[1::2]
