"""DQN of Stable-Baselines3 with a bonus, in a gridworld that a uniformly random walk does not solve.

python examples/sb3_dqn.py
python examples/sb3_dqn.py --bonus none  # the baseline
"""

import torch
from learning_curve import LearningCurve
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env
from tasks import VectorGridworld, arguments

from cfn import make_bonus
from cfn.wrappers.stable_baselines3 import VecBonus

KEYS = {"scale": 0.01, "lr": 1e-3, "batch_size": 64, "min_size": 250, "hidden": [128, 128], "update_period": 2}

args = arguments(steps=12_000)
torch.set_num_threads(1)  # small networks: more threads only wait for each other
# 15x15 cells: a random walk finds the goal, 28 steps away, in one episode of 17,000.
venv = make_vec_env(VectorGridworld, n_envs=1, seed=args.seed, env_kwargs={"size": 15, "max_steps": 55})
bonus = make_bonus(args.bonus, venv.observation_space, seed=args.seed, **(KEYS if args.bonus == "cfn" else {}))
venv = VecBonus(venv, bonus)
model = DQN(
    "MlpPolicy",
    venv,
    learning_rate=1e-3,
    buffer_size=20_000,
    learning_starts=250,
    batch_size=64,
    gamma=0.97,
    train_freq=2,
    target_update_interval=200,
    exploration_fraction=0.1,
    n_steps=3,
    seed=args.seed,
)
curve = LearningCurve(args.curve)
model.learn(args.steps, callback=[curve, venv.callback()])
print(f"DQN, bonus={args.bonus}, seed {args.seed}: return {curve.last:.2f} after {args.steps:,} steps")
