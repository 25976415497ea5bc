"""A bonus in a plain loop, without any library: a random walk, and a picture of predicted against true bonus.

python examples/plain_loop.py --out scatter.png
"""

import argparse

from tasks import VectorGridworld

from cfn import TrueCounts, bonus_errors, make_bonus

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=5000)
parser.add_argument("--out", help="PNG file for the picture")
args = parser.parse_args()

env = VectorGridworld()
bonus = make_bonus("cfn", env.observation_space, lr=1e-3, batch_size=64, min_size=250, hidden=[128, 128])
counts = TrueCounts(env.observation_space)  # only to compare: the bonus does not see it
env.action_space.seed(0)
observation, info = env.reset(seed=0)
for _ in range(args.steps):
    batch = observation[None]  # bonuses take batches, one row per environment
    counts.visit([info["state"]], batch)
    intrinsic_reward = bonus.observe(batch)[0]  # add it to the reward that your agent learns from
    bonus.update()
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    if terminated or truncated:
        observation, info = env.reset()

predicted = bonus.novelty(counts.examples)
errors = bonus_errors(predicted, counts.counts)
print(f"{len(counts)} states visited, mean squared error {errors['bonus/mse']:.4f}")
if args.out:
    import matplotlib.pyplot as plt

    plt.figure(figsize=(4, 4))
    plt.plot([0, 1], [0, 1], "k--", linewidth=1)
    plt.scatter(counts.counts**-0.5, predicted, s=8)
    plt.xlabel("true bonus, 1 / sqrt(visits)")
    plt.ylabel("predicted bonus")
    plt.savefig(args.out, dpi=150, bbox_inches="tight")
