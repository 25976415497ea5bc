"""SAC of Stable-Baselines3 with a bonus, in a maze of gymnasium-robotics (pip install 'cfn-rl[paper,sb3]').

The bonus sees only the position, one entry of the Dict observation: velocities need not be explored.

python examples/sb3_sac.py
"""

import torch
from learning_curve import LearningCurve
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from tasks import arguments, sparse_point_maze

from cfn import make_bonus
from cfn.wrappers.stable_baselines3 import VecBonus

KEYS = {"scale": 0.3, "lr": 1e-3, "batch_size": 128, "min_size": 200, "hidden": [128, 128]}

args = arguments(steps=8_000)
torch.set_num_threads(1)  # small networks: more threads only wait for each other
venv = make_vec_env(sparse_point_maze, n_envs=1, seed=args.seed)
position = venv.observation_space["achieved_goal"]
bonus = make_bonus(args.bonus, position, seed=args.seed, **(KEYS if args.bonus == "cfn" else {}))
venv = VecBonus(venv, bonus, key="achieved_goal")
model = SAC(
    "MultiInputPolicy",
    venv,
    learning_rate=1e-3,
    buffer_size=20_000,
    learning_starts=200,
    batch_size=128,
    gamma=0.97,
    policy_kwargs={"net_arch": [64, 64]},
    seed=args.seed,
)
curve = LearningCurve(args.curve)
model.learn(args.steps, callback=[curve, venv.callback()])
print(f"SAC, bonus={args.bonus}, seed {args.seed}: return {curve.last:.2f} after {args.steps:,} steps")
