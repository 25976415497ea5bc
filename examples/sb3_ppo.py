"""PPO of Stable-Baselines3 with a bonus, in four rooms whose goal an uninformed walk does not find.

python examples/sb3_ppo.py
python examples/sb3_ppo.py --bonus none  # the baseline
"""

import torch
from learning_curve import LearningCurve
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from tasks import Rooms, arguments

from cfn import make_bonus
from cfn.wrappers.stable_baselines3 import VecBonus

KEYS = {"scale": 0.001, "lr": 1e-3, "batch_size": 64, "min_size": 250, "hidden": [128, 128], "update_period": 8}
KEYS["normalize"] = True  # with its mean subtracted, the bonus does not make all visited states look good

args = arguments(steps=50_000)
torch.set_num_threads(1)  # small networks: more threads only wait for each other
venv = make_vec_env(Rooms, n_envs=8, seed=args.seed)
bonus = make_bonus(args.bonus, venv.observation_space, seed=args.seed, **(KEYS if args.bonus == "cfn" else {}))
venv = VecBonus(venv, bonus)
model = PPO(
    "MlpPolicy",
    venv,
    learning_rate=1e-3,
    n_steps=64,
    batch_size=256,
    n_epochs=4,
    gamma=0.97,
    ent_coef=0.001,
    seed=args.seed,
)
curve = LearningCurve(args.curve)
model.learn(args.steps, callback=[curve, venv.callback()])
print(f"PPO, bonus={args.bonus}, seed {args.seed}: return {curve.last:.2f} after {args.steps:,} steps")
