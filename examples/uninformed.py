"""How often a walk that knows nothing finds the goals of the examples' tasks, in one episode.

python examples/uninformed.py               # the rooms, computed exactly
python examples/uninformed.py --episodes 2000  # the maze too, counted (needs pip install 'cfn-rl[paper]')
"""

import argparse

import numpy as np
from tasks import Rooms, sparse_point_maze

from cfn.types import Array


def chance(env: Rooms, keep: float) -> float:
    """Return the probability of reaching the goal in one episode.

    Args:
        env: The rooms.
        keep: Probability of repeating the last action; otherwise the action is drawn uniformly.
    """
    number = {cell: i for i, cell in enumerate(env.cells)}
    actions = range(env.action_space.n)
    leads = np.array([[number[env.moved(cell, action)] for action in actions] for cell in env.cells])
    goal = number[env.goal]
    probability = np.zeros(leads.shape)  # of each cell and last action
    probability[number[env.start]] = 1 / len(actions)
    found = 0.0
    for step in range(env.max_steps):
        mixed = probability.sum(axis=1, keepdims=True) / len(actions)
        chosen = probability if step == 0 else keep * probability + (1 - keep) * mixed
        probability = np.zeros(leads.shape)
        for action in actions:
            np.add.at(probability[:, action], leads[:, action], chosen[:, action])
        found += probability[goal].sum()
        probability[goal] = 0
    return float(found)


def successes(episodes: int, hold: int) -> int:
    """Return the number of episodes in which uniformly random actions reach the end of the maze.

    Args:
        episodes: Number of episodes.
        hold: Steps for which each action is held.
    """
    env, rng, reached = sparse_point_maze(), np.random.default_rng(0), 0
    for episode in range(episodes):
        env.reset(seed=episode)
        ended, steps = False, 0
        action: Array = np.zeros(2, np.float32)
        while not ended:
            if steps % hold == 0:
                action = rng.uniform(-1, 1, 2).astype(np.float32)
            _, reward, terminated, truncated, _ = env.step(action)
            ended, steps, reached = terminated or truncated, steps + 1, reached + int(reward > 0)
    return reached


parser = argparse.ArgumentParser()
parser.add_argument("--episodes", type=int, default=0, help="episodes in the maze, per kind of walk")
args = parser.parse_args()

for keep in (0.0, 0.5, 0.7, 0.9):
    print(f"Rooms, an action is repeated with probability {keep}: one episode of {1 / chance(Rooms(), keep):,.0f}")
if args.episodes:
    for hold in (1, 2, 4):
        print(f"Maze, an action is held for {hold} steps: {successes(args.episodes, hold)} of {args.episodes} episodes")
