"""Measure the elliptical bonus with more states than features: error against the number of states, and a figure.

python examples/crowding.py --out crowding.png
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy import stats

from cfn.bonuses.elliptical import EllipticalBonus

PIXELS = 84
BATCH = 64


def measure(cells: int, features: int, seed: int) -> tuple[float, float, float]:
    """Return mean squared error, mean of B sqrt(N), and Spearman's rho over all states of a gridworld.

    Args:
        cells: Cells per side; each cell is a state, visited 1 to 19 times.
        features: Number of features of the bonus.
        seed: Seed of counts, order of visits and features.
    """
    side = PIXELS // cells
    states = np.zeros((cells**2, PIXELS, PIXELS), np.uint8)
    for state, image in enumerate(states):
        row, column = divmod(state, cells)
        image[row * side : (row + 1) * side, column * side : (column + 1) * side] = 255
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 20, cells**2)
    visits = rng.permutation(np.repeat(np.arange(cells**2), counts))
    bonus = EllipticalBonus(gym.spaces.Box(0, 255, (PIXELS, PIXELS), np.uint8), seed=seed, features=features)
    for batch in np.array_split(visits, len(visits) // BATCH + 1):
        bonus.observe(states[batch])
    answers, true = bonus.novelty(states), counts**-0.5
    rho = stats.spearmanr(answers, true).statistic
    return float(np.mean((answers - true) ** 2)), float(np.mean(answers / true)), float(rho)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, nargs="+", default=[7, 14, 21, 28, 42], help="cells per side")
    parser.add_argument("--features", type=int, nargs="+", default=[256, 512, 1024, 2048], help="numbers of features")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--out", type=Path, default=Path("crowding.png"), help="figure")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for features in options.features:
        errors = []
        for cells in options.cells:
            found = np.array([measure(cells, features, seed) for seed in range(options.seeds)])
            errors.append(found[:, 0])
            mse, factor, rho = found.mean(axis=0)
            text = f"{found[:, 0].min():.2g} to {found[:, 0].max():.2g}"
            print(f"| {cells**2:,} | {features:,} | {mse:.2g} ({text}) | {factor:.2f} | {rho:.3f} |", flush=True)
        axes.plot(np.square(options.cells), np.mean(errors, axis=1), marker="o", label=f"{features:,} features")
    axes.set(xscale="log", yscale="log", xlabel="distinct states", ylabel="mean squared error of the bonus")
    axes.legend(frameon=False)
    figure.savefig(options.out, dpi=110)


if __name__ == "__main__":
    main()
