import numpy as np

from cfn.bonuses.none import NoBonus


def test_it_is_nothing():
    bonus = NoBonus()
    assert bonus.observe(np.ones((3, 2))).tolist() == [0.0, 0.0, 0.0]
    assert bonus.novelty(np.ones((2, 2))).tolist() == [0.0, 0.0]
    assert bonus.update() == {}
