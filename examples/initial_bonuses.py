"""Measure how equal bonuses are before any visit: KL divergence of their shares from uniform, over one-hot vectors.

Table 1 of the DRND paper (Yang et al., 2024) compares RND and DRND in this way, over 100 categories.

python examples/initial_bonuses.py --seeds 20
"""

import argparse
from collections.abc import Sequence

import numpy as np
import torch
from gymnasium.spaces import Box

from cfn.bonuses.drnd import published
from cfn.bonuses.rnd import FEATURES, predictor_network, target_network
from cfn.nn import networks
from cfn.types import Array

TARGETS, ALPHA = 10, 0.9
"""Number of targets of DRND, and the weight of its first term."""


@torch.no_grad()
def divergences(categories: int, outputs: int, seed: int) -> tuple[float, float]:
    """Return the divergences of RND and DRND, whose predictors have not learned yet.

    Args:
        categories: Number of one-hot vectors.
        outputs: Outputs of each network.
        seed: Seed of the initial weights.
    """
    torch.manual_seed(seed)
    space, states = Box(0, 1, (categories,), np.float32), torch.eye(categories)
    predicted = networks.orthogonal(predictor_network(space, outputs))(states)
    targets = torch.stack(
        [networks.orthogonal(target_network(space, outputs))(states) for _ in range(TARGETS)]
    )  # target, row, output
    rnd = (predicted - targets[0]).square().mean(dim=1)
    distance = (predicted - targets.mean(dim=0)).square().mean(dim=1)
    drnd = ALPHA * distance + (1 - ALPHA) * published(predicted, targets)
    return from_uniform(rnd.double().numpy()), from_uniform(drnd.double().numpy())


def from_uniform(bonuses: Array) -> float:
    """Return the KL divergence of the bonuses, divided by their sum, from the uniform distribution."""
    shares = bonuses / bonuses.sum()
    return float((shares * np.log(shares * len(shares))).sum())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--categories", type=int, default=100, help="number of one-hot vectors")
    parser.add_argument("--outputs", type=int, nargs="+", default=[32, 64, 128, FEATURES], help="outputs of a network")
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds")
    options = parser.parse_args(arguments)
    print("| outputs | RND | DRND | ratio |\n| --- | --- | --- | --- |")
    for outputs in options.outputs:
        found = np.array([divergences(options.categories, outputs, seed) for seed in range(options.seeds)])
        rnd, drnd = (f"{mean:.4f} +- {spread:.4f}" for mean, spread in zip(found.mean(0), found.std(0), strict=True))
        print(f"| {outputs} | {rnd} | {drnd} | {found[:, 1].mean() / found[:, 0].mean():.2f} |")


if __name__ == "__main__":
    main()
