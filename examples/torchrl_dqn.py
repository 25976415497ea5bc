"""DQN of TorchRL with a bonus as a transform.

python examples/torchrl_dqn.py
"""

import torch
from tasks import VectorGridworld, arguments
from tensordict.nn import TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymWrapper, SerialEnv, TransformedEnv
from torchrl.modules import MLP, EGreedyModule, QValueActor
from torchrl.objectives import DQNLoss, SoftUpdate

from cfn import make_bonus
from cfn.wrappers.torchrl import BonusTransform

KEYS = {"scale": 0.03, "lr": 1e-3, "batch_size": 64, "min_size": 250, "hidden": [128, 128], "update_period": 4}

args = arguments(steps=5_000)
torch.set_num_threads(1)
torch.manual_seed(args.seed)
space = VectorGridworld().observation_space
bonus = make_bonus(args.bonus, space, seed=args.seed, **(KEYS if args.bonus == "cfn" else {}))
env = TransformedEnv(SerialEnv(4, lambda: GymWrapper(VectorGridworld())), BonusTransform(bonus))
actor = QValueActor(MLP(in_features=space.shape[0], out_features=4, num_cells=[128]), spec=env.action_spec)
explore = EGreedyModule(env.action_spec, eps_init=1.0, eps_end=0.05, annealing_num_steps=args.steps // 10)
policy = TensorDictSequential(actor, explore)
loss_module = DQNLoss(actor, action_space=env.action_spec, delay_value=True)
loss_module.make_value_estimator(gamma=0.97)
update_target = SoftUpdate(loss_module, eps=0.98)
optimizer = torch.optim.Adam(loss_module.parameters(), lr=1e-3)
buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(20_000), batch_size=128)
found = 0
for batch in Collector(
    env, policy, frames_per_batch=32, total_frames=args.steps, auto_register_policy_transforms=False
):
    rows = batch.reshape(-1)
    found += int(rows["next", "reward"].sum())
    rows["next", "reward"] = rows["next", "reward"] + rows["next", "intrinsic_reward"]
    buffer.extend(rows)
    explore.step(rows.numel())
    for _ in range(8):
        loss = loss_module(buffer.sample())["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_target.step()
print(f"TorchRL's DQN, bonus={args.bonus}: the goal was reached {found} times in {args.steps:,} steps")
print({name: round(value, 4) for name, value in env.transform.take_metrics().items()})
