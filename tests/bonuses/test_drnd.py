import gymnasium as gym
import numpy as np
import pytest
import torch
from looks import IMAGES, KINDS, VECTORS, image
from scipy import stats
from walking import assert_asking_changes_nothing, assert_resumes

from cfn.bonuses.drnd import DRNDBonus, pooled, published, ratio
from cfn.errors import BadValueError, UsageError

SMALL = {"targets": 4, "outputs": 8, "min_size": 10, "batch_size": 8, "capacity": 40}


def test_the_statistics_equal_those_computed_by_hand():
    """Targets 2 and 0, draws 2, 2, 0: f = 4/3, mu = 1, B2 = 2."""
    targets, f = torch.tensor([[[2.0]], [[0.0]]]), torch.tensor([[4 / 3]])
    assert float(ratio(f, targets)) == pytest.approx(7 / 9)
    assert float(pooled(f, targets)) == pytest.approx(1 / 3)
    assert float(published(f, targets)) == pytest.approx((7 / 9) ** 0.5)
    assert float(published(torch.ones(1, 1), targets)) == pytest.approx(1e-3), "clipped below"


@pytest.mark.parametrize(("n", "root", "biased"), [(1, 1.0, 0.66), (4, 0.49, 0.46), (16, 0.24, 0.30), (100, 0.1, 0.18)])
def test_with_an_ideal_predictor_only_the_pooled_statistic_counts(n, root, biased):
    rng = np.random.default_rng(0)
    targets = torch.from_numpy(rng.standard_normal((10, 4000, 64)))
    draws = rng.multinomial(n, [0.1] * 10, 4000) / n
    f = torch.einsum("bn,nbo->bo", torch.from_numpy(draws), targets)
    assert float(ratio(f, targets).mean(dim=1).median()) == pytest.approx(1 / n, abs=0.35 / n + 0.02)
    assert float(pooled(f, targets).mean()) == pytest.approx(root, rel=0.05)
    assert float(published(f, targets).mean()) == pytest.approx(biased, abs=0.03)


def test_two_opposite_targets_are_coin_flips():
    rng = np.random.default_rng(0)
    means = torch.from_numpy(rng.choice([-1.0, 1.0], (100_000, 5)).mean(axis=1)[:, None])
    targets = torch.tensor([1.0, -1.0], dtype=torch.float64)[:, None, None].expand(2, len(means), 1)
    assert float(ratio(means, targets).mean()) == pytest.approx(0.2, abs=0.01)


@pytest.mark.thorough
def test_learning_counts():
    """Five images, visited 1, 4, 16, 64 and 200 times: the order is that of the true bonus."""
    bonus = DRNDBonus(IMAGES, seed=1, targets=10, outputs=32, lr=1e-3, batch_size=64, min_size=1)
    counts = [1, 4, 16, 64, 200]
    shown = np.random.default_rng(0).permutation(np.repeat(np.arange(5), counts))
    for n in shown.tolist():
        bonus.observe(image(n)[None])
    for _ in range(300):
        bonus.update()
    seen = bonus.novelty(np.stack([image(n) for n in range(5)]))
    assert stats.spearmanr(seen, [n**-0.5 for n in counts]).statistic >= 0.9
    assert seen[4] < 0.3 < seen[0]


def test_a_visit_keeps_the_target_that_it_drew():
    bonus = DRNDBonus(VECTORS, **SMALL)
    for _ in range(20):
        bonus.observe(np.zeros((1, 5)))
    batch = bonus._replay.sample(40, np.random.default_rng(0))
    frequencies = (batch.mean_flips + 1) / 2
    assert frequencies.sum(axis=1) == pytest.approx(1), "each visit has one target"
    assert (frequencies > 0).sum() > 1, "and not all have the same"


@KINDS
def test_it_resumes(space, look):
    assert_resumes(lambda seed: DRNDBonus(space, seed=seed, **SMALL), space)


def test_asking_changes_nothing():
    assert_asking_changes_nothing(DRNDBonus(IMAGES, **SMALL), DRNDBonus(IMAGES, **SMALL), IMAGES)


def test_the_statistic_is_a_key():
    rewards = [
        DRNDBonus(IMAGES, alpha=0.0, statistic=name, **SMALL).observe(image(1)[None])[0]
        for name in ("published", "pooled")
    ]
    assert rewards[0] != rewards[1]


def test_bad_values_are_refused():
    with pytest.raises(BadValueError, match="capacity: 9 visits are fewer than batch_size=8 and min_size=10 need"):
        DRNDBonus(IMAGES, **SMALL | {"capacity": 9})
    with pytest.raises(UsageError, match="neither images"):
        DRNDBonus(gym.spaces.Discrete(3), **SMALL)
