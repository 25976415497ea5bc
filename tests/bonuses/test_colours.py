"""Bonuses accept colour images and several environments."""

import gymnasium as gym
import numpy as np
import pytest

from cfn.bonuses.counts import CountBonus
from cfn.bonuses.cts import CTSBonus
from cfn.bonuses.drnd import DRNDBonus
from cfn.bonuses.e3b import E3BBonus
from cfn.bonuses.first_visit import FirstVisitBonus
from cfn.bonuses.icm import ICMBonus
from cfn.bonuses.noveld import NovelDBonus
from cfn.bonuses.product import ProductBonus
from cfn.bonuses.simhash import SimHashBonus
from cfn.bonuses.successor import SuccessorBonus
from cfn.bonuses.visits import Visits

COLOURS, ACTIONS = gym.spaces.Box(0, 255, (50, 44, 3), np.uint8), gym.spaces.Discrete(3)
SMALL = {"min_size": 2, "batch_size": 2}
MAKERS = {
    "cts": lambda: CTSBonus(COLOURS),
    "simhash": lambda: SimHashBonus(COLOURS),
    "drnd": lambda: DRNDBonus(COLOURS, targets=2, outputs=4, **SMALL),
    "e3b": lambda: E3BBonus(COLOURS, ACTIONS, num_envs=3, **SMALL),
    "icm": lambda: ICMBonus(COLOURS, ACTIONS, **SMALL),
    "successor": lambda: SuccessorBonus(COLOURS, ACTIONS, features=8, update_period=1, **SMALL),
    "noveld": lambda: NovelDBonus(COLOURS, SimHashBonus(COLOURS), num_envs=3),
    "product": lambda: ProductBonus(CountBonus(), FirstVisitBonus(COLOURS, num_envs=3)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_colour_images_are_accepted(make):
    bonus, rng = make(), np.random.default_rng(0)
    images = rng.integers(0, 256, (3, 50, 44, 3)).astype(np.uint8)
    flags = np.ones(3, bool)
    visits = Visits([(0,), (1,), (2,)], rng.integers(3, size=3), images[::-1], flags, ~flags, ~flags)
    assert bonus.observe(images, visits).shape == (3,)
    bonus.update()
    assert np.isfinite(bonus.novelty(images, visits.states)).all()
