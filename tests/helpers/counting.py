"""A short walk with true states, a bonus that writes down its visits, and what a plain loop would count."""

from collections import Counter

import gymnasium as gym
import numpy as np

from cfn.bonuses.base import Bonus


class Walk(gym.Env):
    """A corridor: action 1 moves on, 0 stays. The last cell ends the episode, and so do `limit` steps.

    Observations are the cell, the number of the episode (0 if `numbered` is false) and the name, if it has one.
    """

    def __init__(self, length=4, limit=6, numbered=True, name=None):
        self.name = [] if name is None else [name]
        self.observation_space = gym.spaces.Box(0, 100, (2 + len(self.name),), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.length, self.limit, self.numbered, self.episode = length, limit, numbered, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = self.steps = 0
        self.episode += self.numbered
        return self.look()

    def step(self, action):
        self.cell += int(action)
        self.steps += 1
        end = self.cell == self.length - 1
        observation, info = self.look()
        return observation, float(end), end, not end and self.steps == self.limit, info

    def look(self):
        return np.array([self.cell, self.episode, *self.name], np.float32), {"state": (self.cell,)}


class Diary(Bonus):
    """Pays 10 plus the number of the cell, and writes down what it was shown."""

    update_period = 3

    def __init__(self):
        self.visits, self.updates = [], 0

    def observe(self, observations, visits=None):
        for i in range(len(observations)):
            names = ("actions", "begins", "terminated", "truncated")
            row = {name: int(getattr(visits, name)[i]) for name in names}
            row["state"] = visits.states[i] if visits.states else None
            row["next"] = visits.next_observations[i].tolist()
            row["observation"] = observations[i].tolist()
            row["environment"] = int(observations[i][2]) if len(observations[i]) == 3 else i
            row["next_state"] = visits.next_states[i] if visits.next_states else None
            self.visits.append(row)
        return 10 + observations[:, 0].astype(np.float64)

    def novelty(self, observations, states=None):
        return np.zeros(len(observations))

    def update(self):
        self.updates += 1
        return {"bonus/loss": 2.0}

    def of(self, environment, *names):
        """Visits of one environment."""
        return [tuple(row[name] for name in names) for row in self.visits if row["environment"] == environment]


def plain_visits(actions, name=None):
    """Visits of one environment under these actions, in a loop that resets it when an episode ends."""
    env, rows = Walk(name=name), []
    observation, info = env.reset()
    begins = 1
    for action in actions:
        following, _, terminated, truncated, following_info = env.step(action)
        rows.append(
            (
                observation.tolist(),
                info["state"],
                int(action),
                following.tolist(),
                following_info["state"],
                begins,
                terminated,
                truncated,
            )
        )
        begins = int(terminated or truncated)
        observation, info = env.reset() if begins else (following, following_info)
    return rows


FIELDS = ("observation", "state", "actions", "next", "next_state", "begins", "terminated", "truncated")


def counts(rows):
    return Counter(tuple(row[0]) for row in rows)
