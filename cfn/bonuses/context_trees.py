"""Density model of small images: context tree switching (CTS), one tree per pixel (Bellemare et al., 2016).

The value of a pixel, one of 8 grey levels, is predicted from four neighbours that were seen before it: left, up,
up-left, up-right. A node of a tree holds the frequencies of the pixel's values after one context. The root uses no
neighbour, its children the left one, and so on down to depth 4. Each inner node mixes its own estimate with that of its
child, with a weight that changes with every image (Veness et al., 2012).

Nodes live in one pool that grows as contexts appear. The probability after learning an image is computed without
changing a tree, so the model can be asked for the gain of an image that it does not learn.
"""

from typing import Any, NamedTuple

import numba
import numpy as np

from cfn.replay.growing_arrays import grow
from cfn.types import Array

LEVELS = 8
"""Grey levels of a pixel."""
DEPTH = 4
"""Neighbours in the longest context."""
PERKS = 1 / LEVELS
"""Added to every frequency, the estimator of Perks; 1/2 would be that of Krichevsky and Trofimov."""
NO_NODE = -1
"""Child that does not exist yet."""


class Gain(NamedTuple):
    """Log-probabilities of an image.

    Attributes:
        before: Log-probability of the image.
        after: Log-probability of the same image once it has been learned.
    """

    before: float
    after: float


@numba.njit(cache=True)
def _gain(levels: Array, children: Array, counts: Array, weights: Array, used: int, age: int, learn: bool) -> Any:
    """Return both log-probabilities of an image, and the number of nodes in use.

    Args:
        levels: Grey levels of the image; all below `LEVELS`.
        children: Children of each node, by the next neighbour's level. The first nodes are the roots, by pixel.
        counts: Frequencies of the pixel's values in each node.
        weights: Weight of a node's own estimate against that of its child.
        used: Number of nodes in use.
        age: Number of images learned before.
        learn: Whether to learn the image; there must be room for `DEPTH` new nodes per pixel.
    """
    height, width = levels.shape
    rate = 1.0 / (age + 2)  # the first update has t = 1 and rate 1 / (t + 1)
    context = np.zeros(DEPTH, np.int64)
    path = np.zeros(DEPTH + 1, np.int64)
    own, own_after = np.zeros(DEPTH + 1), np.zeros(DEPTH + 1)
    log_before, log_after = 0.0, 0.0
    for y in range(height):
        for x in range(width):
            symbol = levels[y, x]
            context[0] = levels[y, x - 1] if x > 0 else 0
            context[1] = levels[y - 1, x] if y > 0 else 0
            context[2] = levels[y - 1, x - 1] if y > 0 and x > 0 else 0
            context[3] = levels[y - 1, x + 1] if y > 0 and x + 1 < width else 0
            node = y * width + x
            for depth in range(DEPTH + 1):
                if depth > 0 and node != NO_NODE:
                    parent = node
                    node = children[parent, context[depth - 1]]
                    if node == NO_NODE and learn:
                        node = used
                        used += 1
                        children[parent, context[depth - 1]] = node
                path[depth] = node
                seen, total = 0.0, 0.0
                if node != NO_NODE:
                    seen = float(counts[node, symbol])
                    for level in range(LEVELS):
                        total += counts[node, level]
                own[depth] = (seen + PERKS) / (total + LEVELS * PERKS)
                own_after[depth] = (seen + 1 + PERKS) / (total + 1 + LEVELS * PERKS)
            before, after = own[DEPTH], own_after[DEPTH]
            for depth in range(DEPTH - 1, -1, -1):
                node = path[depth]
                weight = weights[node] if node != NO_NODE else 0.5
                mine, child = weight * own[depth], (1 - weight) * before
                stay, switch = (1 - rate) * mine + rate * child, (1 - rate) * child + rate * mine
                changed = stay / (stay + switch)
                before = mine + child
                after = changed * own_after[depth] + (1 - changed) * after
                if learn:
                    weights[node] = changed
            if learn:
                for depth in range(DEPTH + 1):
                    counts[path[depth], symbol] += 1
            log_before += np.log(before)
            log_after += np.log(after)
    return log_before, log_after, used


class ContextTrees:
    """One context tree per pixel, for images of one size.

    Args:
        height: Height of the images, in pixels.
        width: Width of the images, in pixels.
    """

    def __init__(self, height: int, width: int) -> None:
        self._shape, self._pixels = (height, width), height * width
        self._used, self._age = self._pixels, 0
        self._children = np.full((self._pixels, LEVELS), NO_NODE, np.int32)
        self._counts = np.zeros((self._pixels, LEVELS), np.uint32)
        self._weights = np.full(self._pixels, 0.5)

    @property
    def nodes(self) -> int:
        """Number of nodes in use."""
        return self._used

    def gain(self, levels: Array, learn: bool) -> Gain:
        """Return the log-probabilities of an image before and after learning it.

        Args:
            levels: Grey levels of the image (uint8), all below `LEVELS`.
            learn: Whether the model keeps what it learned.
        """
        if levels.shape != self._shape or levels.max() >= LEVELS:  # compiled code does not check bounds
            raise ValueError(f"an image of {self._shape} grey levels below {LEVELS} is needed")
        if learn:
            self._reserve(self._used + DEPTH * self._pixels)
        before, after, used = _gain(levels, self._children, self._counts, self._weights, self._used, self._age, learn)
        if learn:
            self._used, self._age = used, self._age + 1
        return Gain(before, after)

    def _reserve(self, nodes: int) -> None:
        """Make room for this many nodes."""
        length = len(self._weights)
        if nodes <= length:
            return
        longer = max(nodes, length + length // 2)
        for name in ("_children", "_counts", "_weights"):
            grow(self, name, longer)
        self._children[length:], self._weights[length:] = NO_NODE, 0.5

    def state_dict(self) -> dict[str, Any]:
        return {
            "age": self._age,
            "children": self._children[: self._used],
            "counts": self._counts[: self._used],
            "weights": self._weights[: self._used],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        children, counts, weights = (state[name] for name in ("children", "counts", "weights"))
        kinds = {"children": np.int32, "counts": np.uint32, "weights": np.float64}
        used = len(weights)
        if any(state[name].dtype != dtype or len(state[name]) != used for name, dtype in kinds.items()):
            raise ValueError("the arrays of the context trees do not belong together")
        if used < self._pixels or children.shape[1:] != (LEVELS,) or counts.shape[1:] != (LEVELS,):
            raise ValueError("the context trees are of another image size")
        if not ((children >= NO_NODE) & (children < used)).all():
            raise ValueError("a context tree refers to a node that does not exist")
        self._children, self._counts, self._weights = children.copy(), counts.copy(), weights.copy()
        self._used, self._age = used, int(state["age"])
