"""DQN in one file, in the manner of CleanRL; the four lines that add a bonus are marked.

python examples/cleanrl_dqn.py
python examples/cleanrl_dqn.py --bonus none  # the baseline
"""

import gymnasium as gym
import numpy as np
import torch
from tasks import VectorGridworld, arguments
from torch import nn

from cfn import BonusVectorWrapper, make_bonus  # 1

KEYS = {"scale": 0.03, "lr": 1e-3, "batch_size": 64, "min_size": 250, "hidden": [128, 128], "update_period": 4}
GAMMA, BATCH, BUFFER, START = 0.97, 128, 20_000, 500

args = arguments(steps=20_000)
torch.set_num_threads(1)
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)
envs = gym.vector.SyncVectorEnv([VectorGridworld] * 4, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
envs = gym.wrappers.vector.RecordEpisodeStatistics(envs)  # inside the bonus: extrinsic returns
keys = KEYS if args.bonus == "cfn" else {}
bonus = make_bonus(args.bonus, envs.single_observation_space, seed=args.seed, **keys)  # 2
envs = BonusVectorWrapper(envs, bonus)  # 3

size, actions = envs.single_observation_space.shape[0], envs.single_action_space.n
networks = [nn.Sequential(nn.Linear(size, 128), nn.ReLU(), nn.Linear(128, actions)) for _ in range(2)]
online, target = networks
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
buffer: list[tuple] = []
returns: list[float] = []
observations, _ = envs.reset(seed=args.seed)
for step in range(0, args.steps, envs.num_envs):
    greedy = online(torch.as_tensor(observations)).argmax(1).numpy()
    explores = rng.random(envs.num_envs) < max(0.05, 1 - step / (0.1 * args.steps))
    chosen = np.where(explores, rng.integers(actions, size=envs.num_envs), greedy)
    following, rewards, terminated, truncated, info = envs.step(chosen)  # 4: the rewards have the bonus
    ended = terminated | truncated
    if ended.any():
        returns += info["episode"]["r"][ended].tolist()
    for i in range(envs.num_envs):
        successor = info["final_obs"][i] if ended[i] else following[i]
        buffer.append((observations[i], chosen[i], rewards[i], successor, terminated[i]))
    buffer, observations = buffer[-BUFFER:], following
    if step >= START:
        rows = [buffer[i] for i in rng.integers(len(buffer), size=BATCH)]
        s, a, r, s2, end = (torch.as_tensor(np.array(column)) for column in zip(*rows, strict=True))
        with torch.no_grad():
            goal = r.float() + GAMMA * target(s2).max(1).values * (1 - end.float())
        loss = nn.functional.smooth_l1_loss(online(s).gather(1, a[:, None])[:, 0], goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            target.load_state_dict(online.state_dict())
last = float(np.mean(returns[-20:])) if returns else 0.0
print(f"DQN, bonus={args.bonus}, seed {args.seed}: return {last:.2f} after {args.steps:,} steps")
