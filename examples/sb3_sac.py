"""SAC of Stable-Baselines3 with a bonus, in a maze of gymnasium-robotics (pip install 'cfn-rl[paper,sb3]').

The bonus sees only the place, one entry of the Dict observation: velocities need not be explored.

python examples/sb3_sac.py
python examples/sb3_sac.py --bonus none  # the baseline
"""

import torch
from learning_curve import LearningCurve
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecExtractDictObs
from tasks import arguments, sparse_point_maze

from cfn import make_bonus
from cfn.wrappers.stable_baselines3 import VecBonus

KEYS = {"scale": 0.001, "lr": 1e-3, "batch_size": 64, "min_size": 200, "hidden": [128, 128]}
KEYS["normalize"] = True  # with its mean subtracted, the bonus does not make all visited states look good

args = arguments(steps=5_000)
torch.set_num_threads(1)  # small networks: more threads only wait for each other
venv = make_vec_env(sparse_point_maze, n_envs=1, seed=args.seed)
place = venv.observation_space["place"]
bonus = make_bonus(args.bonus, place, seed=args.seed, **(KEYS if args.bonus == "cfn" else {}))
bonus_venv = VecBonus(venv, bonus, key="place")
venv = VecExtractDictObs(bonus_venv, "observation")  # n-step returns of SAC need observations that are no Dict
model = SAC(
    "MlpPolicy",
    venv,
    learning_rate=1e-3,
    buffer_size=20_000,
    learning_starts=300,
    batch_size=128,
    gamma=0.98,
    tau=0.02,
    n_steps=3,
    # The reward is sparse and small: a temperature of 1 would drown it, and the default target of -2 explores little.
    ent_coef="auto_0.01",
    target_entropy=0.0,
    policy_kwargs={"net_arch": [64, 64]},
    seed=args.seed,
)
curve = LearningCurve(args.curve)
model.learn(args.steps, callback=[curve, bonus_venv.callback()])
print(f"SAC, bonus={args.bonus}, seed {args.seed}: return {curve.last:.2f} after {args.steps:,} steps")
