"""The Coin Flip Network: equal to its plain version, and a bonus that counts."""

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from looks import IMAGES, KINDS, VECTORS, image, vector

from cfn.bonuses import coin_flip
from cfn.bonuses.coin_flip import CoinFlipBonus
from cfn.bonuses.coin_flip_network import PRIOR_EPSILON
from cfn.bonuses.visits import Visits
from cfn.errors import BadValueError, UsageError
from cfn.nn import networks
from cfn.replay.content_index import content_digest
from cfn.replay.frames import FrameStore

SMALL = {"batch_size": 64, "capacity": 500, "min_size": 20, "d": 8}


def trained(space, look, visits=200, distinct=12, updates=30, num_envs=1, **keys):
    bonus = CoinFlipBonus(space, seed=3, **{**SMALL, **keys})
    rng = np.random.default_rng(0)
    for _ in range(visits // num_envs):
        bonus.observe(np.stack([look(int(n)) for n in rng.integers(distinct, size=num_envs)]))
    for _ in range(updates):
        bonus.update()
    return bonus


def plain_f(bonus, observations):
    """f(s) as the paper writes it: both networks run, the prior normalised."""
    inputs = networks.to_tensor(observations, torch.device("cpu"))
    stats = bonus._prior.stats
    with torch.no_grad():
        prior = bonus._prior.net(inputs)
    mean, variance = (torch.tensor(a, dtype=torch.float32) for a in (stats.mean, stats.variance))
    return bonus._net(inputs) + (prior - mean) / (variance + PRIOR_EPSILON).sqrt()


@KINDS
def test_an_update_equals_the_plain_version(space, look, monkeypatch):
    """Duplicates folded and prior cached: the same loss, gradients and priorities as one row per sample gives.

    In double precision, so that no difference hides behind the order in which single precision sums.
    """
    bonus = trained(space, look)
    single, found = networks.to_input, {}
    monkeypatch.setattr(networks, "to_input", lambda inputs: single(inputs).double())

    def record(optimizer, pair):
        found["gradients"], found["parameters"] = torch.autograd.grad(*pair), pair[1]

    monkeypatch.setattr(coin_flip, "descend", record)
    frames = bonus._replay.frames
    for net in (bonus._net, bonus._prior.net):
        net.double()
    frames.features = (
        bonus._prior.net(networks.to_tensor(frames[np.arange(frames._slots)], torch.device("cpu"))).detach().numpy()
    )
    batch = bonus._replay.sample(bonus._batch_size, np.random.default_rng(5))
    assert len(batch.slots) < bonus._batch_size, "there are duplicates to fold"
    priorities = {}
    monkeypatch.setattr(bonus._batches, "take", lambda: batch)
    monkeypatch.setattr(bonus._replay, "update_priorities", lambda batch, novelty: priorities.update(new=novelty))
    loss = bonus.update()["bonus/loss"]
    gradients, folded = found["gradients"], priorities["new"]
    assert found["parameters"] == list(bonus._net.parameters())

    observations = frames[bonus._replay._slots[batch.entries]]
    coins = torch.from_numpy(bonus._replay.flips(batch.entries))
    output = plain_f(bonus, observations)
    plain_loss = (coins - output).square().mean()
    plain_gradients = torch.autograd.grad(plain_loss, list(bonus._net.parameters()))
    assert loss == pytest.approx(plain_loss.item(), rel=1e-6)
    for ours, theirs in zip(gradients, plain_gradients, strict=True):
        assert (ours - theirs).norm() <= 1e-6 * theirs.norm()
    novelty = output.detach().square().mean(dim=1)
    assert folded[batch.inverse].tolist() == pytest.approx(novelty.tolist(), rel=1e-6)


@KINDS
def test_the_cached_prior_equals_the_computed_one(space, look):
    bonus = trained(space, look)
    seen_and_unseen = np.stack([look(n) for n in range(20)])
    plain = plain_f(bonus, seen_and_unseen).detach().square().mean(dim=1).sqrt().numpy()
    assert bonus.novelty(seen_and_unseen) == pytest.approx(plain, rel=1e-6, abs=1e-6)


@KINDS
@pytest.mark.thorough
def test_it_counts(space, look):
    """After enough updates the bonus is 1 / sqrt(N), as near as its own coins allow, for images and for vectors."""
    bonus = CoinFlipBonus(space, seed=0, batch_size=128, capacity=1000, min_size=10, lr=1e-3)
    visits = [n for n in range(10) for _ in range(4 ** (n % 5))]
    np.random.default_rng(0).shuffle(visits)
    sums = np.zeros((10, 20))
    for visit, n in enumerate(visits):
        bonus.observe(look(n)[None])
        sums[n] += bonus._replay.flips(np.array([visit]))[0]
        bonus.update()
    for _ in range(400):
        bonus.update()
    counts = np.array([visits.count(n) for n in range(10)])
    floor = np.sqrt(np.mean((sums / counts[:, None]) ** 2, axis=1))
    predicted = bonus.novelty(np.stack([look(n) for n in range(10)]))
    assert predicted == pytest.approx(floor, abs=0.12)
    assert np.corrcoef(predicted, counts**-0.5)[0, 1] > 0.95


def test_a_new_state_starts_near_one_with_the_prior_and_near_zero_without():
    unseen = np.stack([image(n) for n in range(40, 60)])
    with_prior, without = (
        trained(IMAGES, image, prior=prior, updates=100).novelty(unseen).mean() for prior in (True, False)
    )
    assert 0.5 < with_prior < 2
    assert without < 0.3


def test_before_min_size_there_is_no_bonus_and_no_learning():
    bonus = CoinFlipBonus(IMAGES, **SMALL)
    for n in range(20):
        assert bonus.observe(image(n)[None]).tolist() == [0.0]
        assert bonus._prior.stats.count == 1
        assert bonus.update() == {} or n == 19
        assert (bonus.novelty(image(n)[None])[0] > 0) == (n == 19), "what is asked is what would be paid"
    assert bonus.observe(image(21)[None])[0] > 0
    assert bonus.update()["bonus/loss"] > 0
    assert bonus._prior.stats.count == 2


def test_learning_begins_with_a_visit_and_not_with_a_question():
    bonus = CoinFlipBonus(IMAGES, **SMALL)
    for n in range(SMALL["min_size"]):
        assert not bonus.state_dict()["begun"]
        bonus.novelty(image(n)[None])
        assert not bonus.state_dict()["begun"]
        bonus.observe(image(n)[None])
    assert bonus.state_dict()["begun"], "though nobody has asked since"


def test_the_reward_is_the_scaled_bonus():
    bonus = trained(IMAGES, image, scale=0.25)
    asked = bonus.novelty(image(3)[None])
    assert bonus.observe(image(3)[None]) == pytest.approx(0.25 * asked)


def test_the_normalised_reward_divides_by_the_running_variance():
    bonus = trained(IMAGES, image, scale=0.5, normalize=True)
    asked = bonus.novelty(image(3)[None])
    stats = copy.deepcopy(bonus._bonus_stats)
    stats.update(asked)
    assert bonus.observe(image(3)[None]) == pytest.approx(0.5 * (asked - stats.mean) / stats.variance, rel=1e-5)


def test_asking_changes_nothing():
    bonus = trained(IMAGES, image)
    before = copy.deepcopy(bonus.state_dict())
    bonus.novelty(np.stack([image(n) for n in range(30)]))
    after = bonus.state_dict()
    assert before["rng"] == after["rng"]
    frames = [state["memory"]["replay"]["frames"]["pixels"]["frames"] for state in (before, after)]
    assert (frames[0] == frames[1]).all()
    assert all((before["net"][k] == after["net"][k]).all() for k in before["net"])


@pytest.mark.parametrize(
    ("flips", "square"), [("rademacher", 1.0), ("balanced", 1.0), ("gaussian", 1.0), ("zero", 0.0)]
)
def test_flips_are_drawn_as_asked(flips, square, monkeypatch):
    bonus, batches = CoinFlipBonus(VECTORS, flips=flips, **SMALL), []
    add = bonus._replay.add
    monkeypatch.setattr(
        bonus._replay, "add", lambda slots, flips, *rest: (batches.append(flips), add(slots, flips, *rest))
    )
    for n in range(400):
        bonus.observe(vector(n)[None])
    drawn = np.concatenate(batches)
    assert np.mean(drawn**2) == pytest.approx(square, abs=0.08)
    assert abs(drawn.mean()) < 0.08
    if flips in ("rademacher", "balanced"):
        assert set(np.unique(drawn)) == {-1.0, 1.0}
    assert bonus._replay.flips(np.array([399]))[0] == pytest.approx(drawn[399])


@KINDS
def test_balanced_coins_are_orthogonal_to_what_the_network_answers(space, look):
    bonus = trained(space, look, flips="balanced", d=20)
    overlaps = []
    for n in range(40):
        state = look(n % 12)[None]
        answer = bonus._f(state, bonus._prior.known(state)).numpy()[0]
        bonus.observe(state)
        coins = bonus._replay.flips(np.array([(bonus._replay._added - 1) % SMALL["capacity"]]))[0]
        overlaps.append(float(coins @ answer) / np.linalg.norm(answer))
    assert np.sqrt(np.mean(np.square(overlaps))) < 0.1, "independent coins: 1"


def test_frames_are_stored_once():
    bonus = trained(IMAGES, image, visits=400, distinct=12)
    assert len(bonus._replay) == 400
    assert len(bonus._replay.frames) == 12


def test_a_frame_that_is_already_in_the_shared_store_is_not_hashed_again(monkeypatch):
    hashed = []
    monkeypatch.setattr(
        "cfn.replay.frames.content_digest", lambda content: hashed.append(content) or content_digest(content)
    )
    store = FrameStore(IMAGES.shape, IMAGES.dtype)
    bonus = CoinFlipBonus(IMAGES, frames=store, **SMALL)
    for step in range(30):
        numbers = np.arange(3) + 3 * (step % 5)
        seen = np.stack([image(int(n)) for n in numbers])
        for look in seen:
            store.put(look)  # as the agent does
        before = len(hashed)
        bonus.observe(seen)
        bonus.novelty(seen)
        assert len(hashed) == before
    assert len(store) == 15


def test_the_floor_is_reported_from_the_true_states_of_all_visits():
    bonus, visits = CoinFlipBonus(IMAGES, **SMALL), [0, 1, 0, 2, 0, 1]
    for n in visits:
        bonus.observe(image(n)[None], Visits([(n, -n)]))
    flips = bonus._replay.flips(np.arange(6))
    floor = [np.sqrt(np.mean(np.mean(flips[np.array(visits) == n], axis=0) ** 2)) for n in range(3)]
    counts = np.array([3, 2, 1])
    expected = np.mean((floor - counts**-0.5) ** 2)
    assert bonus.report([(0, 0), (1, -1), (2, -2)], counts) == {"bonus/floor_mse": pytest.approx(expected)}
    assert trained(IMAGES, image).report([(0, 0)], np.ones(1)) == {}, "without true states nothing is known"


def test_several_environments_at_once_count_alike():
    one, four = (trained(IMAGES, image, num_envs=n, updates=0) for n in (1, 4))
    assert len(one._replay) == len(four._replay) == 200


def test_the_same_seed_gives_the_same_bonus():
    runs = [trained(IMAGES, image).novelty(np.stack([image(n) for n in range(12)])) for _ in range(2)]
    assert (runs[0] == runs[1]).all()


@KINDS
@pytest.mark.parametrize(
    "keys", [{}, {"flips": "balanced", "eviction": "novelty", "capacity": 70}], ids=["paper", "own"]
)
def test_its_state_can_be_saved(space, look, keys):
    one = trained(space, look, normalize=True, **keys)
    other = CoinFlipBonus(space, seed=99, **{**SMALL, "normalize": True, **keys})
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for n in range(30):
        rewards = [bonus.observe(look(n % 15)[None])[0] for bonus in (one, other)]
        losses = [bonus.update()["bonus/loss"] for bonus in (one, other)]
        assert rewards[0] == rewards[1]
        assert losses[0] == losses[1]


ACTIONS = gym.spaces.Discrete(3)


@KINDS
@pytest.mark.thorough
def test_it_counts_state_action_pairs(space, look):
    bonus = CoinFlipBonus(
        space, seed=0, batch_size=128, capacity=1000, min_size=10, lr=1e-3, of="state_action", action_space=ACTIONS
    )
    counts = {(n, a): 4 ** ((n + a) % 4) for n in range(4) for a in range(3)}
    visits = [pair for pair, count in counts.items() for _ in range(count)]
    np.random.default_rng(0).shuffle(visits)
    for n, action in visits:
        bonus.observe(look(int(n))[None], Visits([(int(n),)], np.array([action])))
        bonus.update()
    for _ in range(400):
        bonus.update()
    pairs, true = list(counts), np.array(list(counts.values())) ** -0.5
    predicted = bonus.novelty(np.stack([look(n) for n, _ in pairs]), pairs)
    assert np.corrcoef(predicted, true)[0, 1] > 0.95
    floor = bonus.report(pairs, np.array(list(counts.values())))["bonus/floor_mse"]
    assert np.mean((predicted - true) ** 2) < floor + 0.01, "each pair has coins of its own"
    of_state = bonus.novelty(look(0)[None])[0]
    assert of_state == pytest.approx(predicted[:3].mean(), abs=0.01), "without an action, the mean over actions"


def test_pairs_are_saved_and_need_discrete_actions():
    keys = {**SMALL, "of": "state_action", "action_space": ACTIONS}
    one, other = (CoinFlipBonus(IMAGES, seed=seed, **keys) for seed in (1, 2))
    visits = [(n % 7, n % 3) for n in range(60)]
    for n, action in visits:
        one.observe(image(n)[None], Visits(actions=np.array([action])))
        one.update()
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for n, action in visits:
        rewards = [bonus.observe(image(n)[None], Visits(actions=np.array([action])))[0] for bonus in (one, other)]
        losses = [bonus.update()["bonus/loss"] for bonus in (one, other)]
        assert rewards[0] == rewards[1]
        assert losses[0] == losses[1]
    with pytest.raises(UsageError, match="bonus=cfn needs `actions` of each visit"):
        one.observe(image(0)[None])
    with pytest.raises(BadValueError, match="of: state_action needs discrete actions, not Box"):
        CoinFlipBonus(IMAGES, of="state_action", action_space=gym.spaces.Box(-1, 1, (2,)))


def test_impossible_values_are_refused():
    with pytest.raises(BadValueError, match="capacity: 10 states cannot fill a batch"):
        CoinFlipBonus(IMAGES, capacity=10, batch_size=11)
    with pytest.raises(BadValueError, match="never reach min_size=200"):
        CoinFlipBonus(IMAGES, capacity=100, batch_size=11, min_size=200)
    with pytest.raises(BadValueError, match="eviction: novelty is known from the priorities"):
        CoinFlipBonus(IMAGES, eviction="novelty", prioritize=False)
    with pytest.raises(UsageError, match="neither images"):
        CoinFlipBonus(gym.spaces.Discrete(3))
    bonus = CoinFlipBonus(VECTORS, **SMALL)
    with pytest.raises(UsageError, match="NaN"):
        bonus.observe(np.array([[0.0, 1.0, np.nan, 0.0, 0.0]]))
