"""Draws learning curves that the other scripts have written: one panel per algorithm, with and without the bonus.

for seed in 10 11 12 13 14; do for bonus in cfn none; do
    python examples/sb3_ppo.py --bonus $bonus --seed $seed --curve curves/ppo-$bonus-$seed.csv
done; done
python examples/curves.py curves --out curves.png
"""

import argparse
import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from cfn.analysis.stats import common_grid, estimate, on_grid
from cfn.runs.reading import Series

COLOURS = {"cfn": "#3366aa", "none": "#dd7711"}

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path, help="folder of files ALGORITHM-BONUS-SEED.csv")
parser.add_argument("--out", type=Path, default=Path("curves.png"))
args = parser.parse_args()

curves: dict[tuple[str, str], list[Series]] = {}
for path in sorted(args.folder.glob("*-*-*.csv")):
    algorithm, bonus, _ = path.stem.split("-")
    with path.open(newline="") as file:
        rows = [(float(row["step"]), float(row["return"])) for row in csv.DictReader(file)]
    steps, returns = np.array(rows).T
    curves.setdefault((algorithm, bonus), []).append(Series(steps, returns))
algorithms = sorted({algorithm for algorithm, _ in curves})
figure, panels = plt.subplots(1, len(algorithms), figsize=(4 * len(algorithms), 3), squeeze=False, sharey=True)
for panel, algorithm in zip(panels[0], algorithms, strict=True):
    for bonus, colour in COLOURS.items():
        if series := curves.get((algorithm, bonus)):
            grid = common_grid(series)
            result = estimate(on_grid(series, grid), "iqm")
            panel.plot(grid, result.centre, color=colour, label=f"bonus={bonus} ({len(series)} seeds)")
            panel.fill_between(grid, result.low, result.high, color=colour, alpha=0.18, linewidth=0)
            final = [float(one.values[-1]) for one in series]
            print(f"{algorithm} {bonus}: {len(series)} seeds, last returns {', '.join(f'{r:.2f}' for r in final)}")
    panel.set(title=algorithm.upper(), xlabel="environment steps", ylim=(-0.05, 1.05))
    panel.legend(frameon=False)
panels[0, 0].set_ylabel("extrinsic return, last 20 episodes")
figure.savefig(args.out, dpi=130, bbox_inches="tight")
