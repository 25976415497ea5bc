import numpy as np
import pytest
from looks import IMAGES, image
from walking import ACTIONS, assert_asking_changes_nothing, assert_resumes, walk

from cfn.bonuses.coin_flip import CoinFlipBonus
from cfn.bonuses.counts import CountBonus
from cfn.bonuses.e3b import E3BBonus
from cfn.bonuses.first_visit import FirstVisitBonus
from cfn.bonuses.icm import ICMBonus
from cfn.bonuses.noveld import NovelDBonus
from cfn.bonuses.product import ProductBonus
from cfn.bonuses.rnd import RNDBonus
from cfn.bonuses.visits import Visits
from cfn.errors import BadValueError

CFN = {"min_size": 5, "batch_size": 4, "capacity": 30, "channels": (4, 4, 4)}
E3B = {"min_size": 8, "batch_size": 4, "capacity": 30}


def counting(**keys):
    return ProductBonus(CountBonus(), FirstVisitBonus(IMAGES, scale=1), **keys)


def test_a_state_of_four_earlier_episodes_pays_1_over_sqrt_5_and_then_0():
    bonus = counting(scale=1, normalize=False)
    paid = []
    for begins in [True] * 5 + [False]:
        paid.append(bonus.observe(image(1)[None], Visits(states=[(1,)], begins=np.array([begins])))[0])
    assert paid == pytest.approx([1, 2**-0.5, 3**-0.5, 0.5, 5**-0.5, 0])


def test_the_product_is_divided_by_its_standard_deviation():
    raw, normalized = (counting(scale=0.5, normalize=flag) for flag in (False, True))
    paid = []
    for begins in (True, True, False):
        step = Visits(states=[(1,)], begins=np.array([begins]))
        paid.append(raw.observe(image(1)[None], step)[0] / 0.5)
        last = normalized.observe(image(1)[None], step)[0]
    assert last == 0
    step = Visits(states=[(1,)], begins=np.array([True]))
    paid.append(4**-0.5)
    samples = np.array([0, *paid])
    variance = np.mean((samples - samples.mean()) ** 2) + 1 / 5  # one sample: mean 0, variance 1
    assert normalized.observe(image(1)[None], step)[0] == pytest.approx(0.5 * 0.5 / variance**0.5)


def test_novelty_is_that_of_the_beginning_of_an_episode():
    bonus = counting()
    for _ in range(4):
        bonus.observe(image(1)[None], Visits(states=[(1,)], begins=np.array([False])))
    assert bonus.novelty(image(1)[None], [(1,)]) == pytest.approx([0.5])


def test_parts_are_updated_as_often_as_they_say():
    slow = CoinFlipBonus(IMAGES, update_period=6, **CFN)
    fast = E3BBonus(IMAGES, ACTIONS, num_envs=2, update_period=4, **E3B)
    bonus = ProductBonus(slow, fast)
    assert bonus.update_period == 2
    for observations, visits in walk(IMAGES, 12):
        bonus.observe(observations, visits)
    updated = [sorted(bonus.update()) for _ in range(6)]
    two, three = ["bonus/episodic_loss"], ["bonus/global_loss"]
    assert updated == [[], two, three, two, [], [*two, *three]]
    assert bonus.networks == (slow._net, fast._model)
    assert bonus.full_bytes == slow.full_bytes + fast.full_bytes


@pytest.mark.parametrize("name", ["cfn", "rnd", "count", "icm"])
def test_it_resumes(name):
    def make(seed):
        parts = {
            "cfn": lambda: CoinFlipBonus(IMAGES, seed=seed, **CFN),
            "rnd": lambda: RNDBonus(IMAGES, seed=seed),
            "count": CountBonus,
            "icm": lambda: ICMBonus(IMAGES, ACTIONS, seed=seed, **E3B),
        }
        return ProductBonus(parts[name](), E3BBonus(IMAGES, ACTIONS, seed=seed, num_envs=2, **E3B))

    assert_resumes(make, IMAGES, steps=12, more=6)


def test_asking_changes_nothing():
    one, other = (
        ProductBonus(CoinFlipBonus(IMAGES, **CFN), E3BBonus(IMAGES, ACTIONS, num_envs=2, **E3B)) for _ in range(2)
    )
    assert_asking_changes_nothing(one, other, IMAGES)


def test_parts_of_the_wrong_kind_are_refused():
    episodic, lifelong = FirstVisitBonus(IMAGES), CountBonus()
    with pytest.raises(BadValueError, match=r"^episodic: CountBonus is paid for a state, but bonus=product needs"):
        ProductBonus(lifelong, lifelong)
    with pytest.raises(BadValueError, match=r"^global: FirstVisitBonus remembers one episode, but bonus=product needs"):
        ProductBonus(episodic, episodic)
    with pytest.raises(BadValueError, match=r"^global: ProductBonus is itself made of bonuses, but"):
        ProductBonus(ProductBonus(lifelong, episodic), episodic)


def test_parts_that_count_pairs_are_refused():
    pairs = CoinFlipBonus(IMAGES, of="state_action", action_space=ACTIONS, **CFN)
    with pytest.raises(BadValueError, match="global: CoinFlipBonus counts state-action pairs"):
        ProductBonus(pairs, FirstVisitBonus(IMAGES))
    with pytest.raises(BadValueError, match="novelty: CoinFlipBonus counts state-action pairs"):
        NovelDBonus(IMAGES, pairs)
