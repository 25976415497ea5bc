import numpy as np
import pytest
from looks import IMAGES, VECTORS, image
from walking import ACTIONS, assert_asking_changes_nothing, assert_resumes

from cfn.bonuses.base import Bonus
from cfn.bonuses.coin_flip import CoinFlipBonus
from cfn.bonuses.counts import CountBonus
from cfn.bonuses.cts import CTSBonus
from cfn.bonuses.first_visit import FirstVisitBonus
from cfn.bonuses.icm import ICMBonus
from cfn.bonuses.noveld import NovelDBonus
from cfn.bonuses.rnd import RNDBonus
from cfn.bonuses.simhash import SimHashBonus
from cfn.bonuses.visits import Visits
from cfn.errors import BadValueError, UsageError


class Known(Bonus):
    """A novelty that is given: that of image n is `values[n]`."""

    def __init__(self, values):
        self.values, self.seen = values, []

    def number(self, observation):
        return next(n for n in self.values if np.array_equal(image(n), observation))

    def observe(self, observations, visits=None):
        self.seen += map(self.number, observations)
        return np.zeros(len(observations))

    def novelty(self, observations, states=None):
        return np.array([self.values[self.number(one)] for one in observations])


def step(bonus, here, there, begins=False):
    known = Visits(next_observations=image(there)[None], begins=np.array([begins]))
    return bonus.observe(image(here)[None], known)[0]


def test_rewards_equal_those_computed_by_hand():
    """alpha 0.5: novelty 3 after 2 pays 2 on the first visit and 0 on the second; 1 after 2.5 pays 0."""
    novelty = Known({0: 2.0, 1: 3.0, 2: 2.5, 3: 1.0})
    bonus = NovelDBonus(IMAGES, novelty, scale=10, alpha=0.5, normalize=False)
    assert step(bonus, 0, 1, begins=True) == 20
    assert step(bonus, 1, 0) == 0, "the first observation of the episode counts as visited"
    assert step(bonus, 0, 1) == 0, "seen before in this episode"
    assert step(bonus, 2, 3) == 0
    assert step(bonus, 0, 1, begins=True) == 20, "in the next episode it is new again"
    assert novelty.seen == [1, 0, 1, 3, 1], "it learns from next observations"


def test_differences_are_divided_by_their_standard_deviation():
    bonus = NovelDBonus(IMAGES, Known({0: 0.0, 1: 3.0}), scale=1)
    variance = np.var([0, 3]) + 1 / 2  # one sample: mean 0, variance 1
    assert step(bonus, 0, 1, begins=True) == pytest.approx(3 / variance**0.5)


def test_true_counts_count_arrivals():
    bonus = NovelDBonus(IMAGES, CountBonus(), scale=1, alpha=0, normalize=False)
    known = Visits([(0,)], None, image(1)[None], np.array([True]), next_states=[(1,)])
    paid = [bonus.observe(image(0)[None], known)[0] for _ in range(3)]
    assert paid == pytest.approx([1, 1, 2**-0.5]), "a state without visits counts as visited once"
    assert bonus.novelty(image(1)[None], [(1,)]) == pytest.approx([3**-0.5])


@pytest.mark.parametrize("name", ["rnd", "cfn", "simhash", "cts", "count"])
def test_it_resumes_on_any_novelty(name):
    cfn = {"min_size": 5, "batch_size": 4, "capacity": 30, "channels": (4, 4, 4)}
    makers = {
        "rnd": lambda seed: RNDBonus(IMAGES, seed=seed),
        "cfn": lambda seed: CoinFlipBonus(IMAGES, seed=seed, **cfn),
        "simhash": lambda seed: SimHashBonus(IMAGES, seed=seed),
        "cts": lambda seed: CTSBonus(IMAGES),
        "count": lambda seed: CountBonus(),
    }
    assert_resumes(lambda seed: NovelDBonus(IMAGES, makers[name](seed), num_envs=2), IMAGES, steps=12, more=6)


def test_asking_changes_nothing():
    one, other = (NovelDBonus(VECTORS, RNDBonus(VECTORS), num_envs=2) for _ in range(2))
    assert_asking_changes_nothing(one, other, VECTORS)


def test_other_novelties_and_missing_context_are_refused():
    with pytest.raises(BadValueError, match=r"^novelty: FirstVisitBonus remembers one episode, but bonus=noveld"):
        NovelDBonus(IMAGES, FirstVisitBonus(IMAGES))
    with pytest.raises(BadValueError, match=r"^novelty: ICMBonus is paid for a transition, but bonus=noveld compares"):
        NovelDBonus(IMAGES, ICMBonus(IMAGES, ACTIONS))
    with pytest.raises(BadValueError, match=r"^novelty: NovelDBonus is itself made of bonuses, but bonus=noveld"):
        NovelDBonus(IMAGES, NovelDBonus(IMAGES, CountBonus()))
    with pytest.raises(UsageError, match="bonus=noveld needs `next_observations` and `begins`"):
        NovelDBonus(IMAGES, CountBonus()).observe(image(0)[None])
