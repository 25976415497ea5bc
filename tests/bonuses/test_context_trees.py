"""Context trees against a plain version of them, and against numbers computed by hand."""

import copy
import itertools
import math

import numpy as np
import pytest

from cfn.bonuses.context_trees import ContextTrees


class PlainTree:
    """One pixel's tree, as published: nodes by context, one dictionary."""

    def __init__(self):
        self.counts, self.weights, self.updates = {}, {}, 0

    def own(self, context, symbol):
        counts = self.counts.get(context, [0] * 8)
        return (counts[symbol] + 1 / 8) / (sum(counts) + 1)

    def probability(self, context, symbol):
        p = self.own(context, symbol)
        for depth in (3, 2, 1, 0):
            w = self.weights.get(context[:depth], 0.5)
            p = w * self.own(context[:depth], symbol) + (1 - w) * p
        return p

    def learn(self, context, symbol):
        self.updates += 1
        alpha, p = 1 / (self.updates + 1), self.own(context, symbol)
        for depth in (3, 2, 1, 0):
            node = context[:depth]
            w, own = self.weights.get(node, 0.5), self.own(node, symbol)
            s = (1 - alpha) * w * own + alpha * (1 - w) * p
            q = (1 - alpha) * (1 - w) * p + alpha * w * own
            p = w * own + (1 - w) * p
            self.weights[node] = s / (s + q)
        for depth in range(5):
            self.counts.setdefault(context[:depth], [0] * 8)[symbol] += 1


def contexts(image):
    padded = np.pad(image, ((1, 0), (1, 1)))
    height, width = image.shape
    for y, x in itertools.product(range(height), range(width)):
        up, here = padded[y], padded[y + 1]
        yield (int(here[x]), int(up[x + 1]), int(up[x]), int(up[x + 2])), int(image[y, x])


def plain_gain(trees, image, learn):
    pairs = list(zip(trees, contexts(image), strict=True))
    before = sum(math.log(tree.probability(*pair)) for tree, pair in pairs)
    learned = [tree if learn else copy.deepcopy(tree) for tree, _ in pairs]
    for tree, (_, pair) in zip(learned, pairs, strict=True):
        tree.learn(*pair)
    return before, sum(math.log(tree.probability(*pair)) for tree, (_, pair) in zip(learned, pairs, strict=True))


def test_it_equals_a_plain_version():
    rng = np.random.default_rng(0)
    plain, fast = [PlainTree() for _ in range(12)], ContextTrees(3, 4)
    for i in range(60):
        image = rng.integers(0, rng.integers(1, 9), (3, 4)).astype(np.uint8)
        assert fast.gain(image, learn=i % 3 > 0) == pytest.approx(plain_gain(plain, image, learn=i % 3 > 0))


def test_the_probabilities_of_a_pixel_sum_to_1():
    trees, rng = ContextTrees(1, 1), np.random.default_rng(0)
    for _ in range(30):
        total = sum(math.exp(trees.gain(np.full((1, 1), a, np.uint8), learn=False).before) for a in range(8))
        assert total == pytest.approx(1)
        trees.gain(rng.integers(0, 8, (1, 1)).astype(np.uint8), learn=True)


def test_asking_changes_nothing():
    trees, rng = ContextTrees(3, 3), np.random.default_rng(0)
    images = rng.integers(0, 8, (20, 3, 3)).astype(np.uint8)
    for image in images[:10]:
        trees.gain(image, learn=True)
    before = copy.deepcopy(trees.state_dict())
    asked = [trees.gain(image, learn=False) for image in images]
    assert asked == [trees.gain(image, learn=False) for image in images]
    after = trees.state_dict()
    assert all(np.array_equal(before[key], after[key]) for key in before)


def test_its_state_can_be_saved_and_foreign_states_are_refused():
    one, other, rng = ContextTrees(3, 3), ContextTrees(3, 3), np.random.default_rng(0)
    images = rng.integers(0, 8, (20, 3, 3)).astype(np.uint8)
    for image in images[:10]:
        one.gain(image, learn=True)
    state = copy.deepcopy(one.state_dict())
    other.load_state_dict(state)
    assert [one.gain(i, learn=True) for i in images] == [other.gain(i, learn=True) for i in images]
    with pytest.raises(ValueError, match="another image size"):
        ContextTrees(20, 20).load_state_dict(ContextTrees(2, 2).state_dict())
    state["children"][0, 0] = 10**6
    with pytest.raises(ValueError, match="does not exist"):
        other.load_state_dict(state)
    with pytest.raises(ValueError, match="below 8"):
        one.gain(np.full((3, 3), 8, np.uint8), learn=False)
