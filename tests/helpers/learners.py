"""Small agents and bonuses that learn from a replay buffer, and observations for them."""

import gymnasium as gym
import numpy as np
from looks import IMAGES, image

from cfn.agents.rainbow import RainbowAgent
from cfn.agents.sac import SACAgent
from cfn.bonuses.coin_flip import CoinFlipBonus

VECTORS = gym.spaces.Box(-1, 1, (3,), np.float32)
SMALL = {"capacity": 40, "min_size": 10, "batch_size": 16}
NETWORK = {"channels": (4, 4, 4), "hidden": (8,)}


def cfn_bonus(**keys):
    return CoinFlipBonus(IMAGES, d=4, channels=(4, 4, 4), **SMALL, **keys)


def see(learner, number):
    """Let a learner observe one more visit or transition."""
    if isinstance(learner, RainbowAgent | SACAgent):
        space = IMAGES if isinstance(learner, RainbowAgent) else VECTORS
        rng = np.random.default_rng(number)
        looks = [(rng.uniform(0, 1, (1, *space.shape)) * (255 if space is IMAGES else 1)).astype(space.dtype)] * 2
        actions = learner.act(looks[0])
        learner.observe(looks[0], actions, rng.normal(size=1), looks[1], rng.random(1) < 0.1, np.array([False]))
    else:
        learner.observe(image(number % 30)[None])


LEARNERS = {
    "cfn": cfn_bonus,
    "rainbow": lambda: RainbowAgent(IMAGES, gym.spaces.Discrete(2), **SMALL, **NETWORK),
    "sac": lambda: SACAgent(VECTORS, gym.spaces.Box(-1, 1, (2,)), **SMALL, hidden=(8,)),
}


def losses(learner, numbers):
    """Return the losses of one update after each visit."""
    found = []
    for number in numbers:
        see(learner, number)
        found += [float(value) for value in learner.update().values()]
    return found
