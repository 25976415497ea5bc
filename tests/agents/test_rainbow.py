"""Rainbow: what it stores, what it learns, how it acts."""

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch

from cfn.agents.rainbow import RainbowAgent
from cfn.envs.stack import StackFrames
from cfn.errors import BadValueError, UsageError
from cfn.replay.frames import FrameStore

VECTOR = gym.spaces.Box(-1, 1, (2,), np.float32)
IMAGE = gym.spaces.Box(0, 255, (12, 12), np.uint8)
TWO = gym.spaces.Discrete(2)
SMALL = {"capacity": 1000, "min_size": 10, "batch_size": 16, "hidden": (32,), "channels": (4, 4, 4)}
ALL = ("double", "dueling", "noisy")
NETWORKS = [dict.fromkeys(names, True) for names in ((), *((name,) for name in ALL), ALL)]


def variants(keys):
    return pytest.mark.parametrize("keys", keys, ids=lambda keys: "+".join(keys) or "plain")


def walk(agent, space, steps, num_envs=1, seed=0):
    """Random observations, rewards and ends."""
    rng = np.random.default_rng(seed)

    def look():
        if space.dtype == np.uint8:
            return rng.integers(256, size=(num_envs, *space.shape)).astype(np.uint8)
        return rng.uniform(-1, 1, (num_envs, *space.shape)).astype(np.float32)

    observations = look()
    for _ in range(steps):
        actions, after = agent.act(observations), look()
        ends = rng.random(num_envs)
        terminated, truncated = ends < 0.1, ends > 0.9
        agent.observe(observations, actions, rng.normal(size=num_envs), after, terminated, truncated)
        agent.update()
        observations = np.where((terminated | truncated).reshape(-1, *[1] * len(space.shape)), look(), after)
    return agent


class Corridor:
    """s0 -(any)-> s1 (reward 0); s1: action 0 ends with 1, action 1 ends with 0; or the episode is cut off at s1."""

    observations = np.array([[1, 0], [0, 1]], np.float32)

    def play(self, agent, steps, cut=False):
        place = 0
        for _ in range(steps):
            seen = self.observations[[place]]
            action = agent.act(seen)
            no, yes = np.array([False]), np.array([True])
            if place == 0:
                agent.observe(seen, action, np.zeros(1), self.observations[[1]], no, yes if cut else no)
                place = 0 if cut and np.random.default_rng(agent._steps).random() < 0.5 else 1
            else:
                agent.observe(seen, action, (action == 0).astype(float), self.observations[[0]], yes, no)
                place = 0
            agent.update()


def values(agent, observations):
    with torch.no_grad():
        for layer in agent._net.noisy_layers:
            layer.noise_on = False
        return agent._support.mean(agent._net(torch.from_numpy(observations))).numpy()


@variants(NETWORKS)
@pytest.mark.thorough
@pytest.mark.parametrize("cut", [False, True], ids=["to the end", "cut off"])
def test_a_two_state_world_has_the_values_it_should(keys, cut):
    """Q(s1, .) = (1, 0); Q(s0, .) = gamma, whether the episode goes on from s1 or is cut off there."""
    settings = {**SMALL, "min_size": 50, "gamma": 0.8, "vmin": -2.0, "vmax": 2.0, "lr": 3e-3, "n_step": 1,
                "target_period": 20, "epsilon": 0.5, "epsilon_decay": 1, "hidden": (64,)}  # fmt: skip
    agent = RainbowAgent(VECTOR, TWO, **{**settings, **keys})
    Corridor().play(agent, 1500, cut)
    learned = values(agent, Corridor.observations)
    assert learned[1, 0] == pytest.approx(1, abs=0.08)
    assert learned[0] == pytest.approx([0.8, 0.8], abs=0.12)
    if not keys.get("noisy"):  # which stops trying what it knows to be worse
        assert learned[1, 1] == pytest.approx(0, abs=0.08)


@pytest.mark.parametrize("num_envs", [1, 4])
@pytest.mark.parametrize("stack", [1, 3])
def test_the_replay_holds_what_happened(num_envs, stack):
    """Every environment's stream, n steps at a time, against the full record."""
    frames = FrameStore((4, 4), np.uint8)
    space = gym.spaces.Box(0, 255, (4, 4, stack) if stack > 1 else (4, 4), np.uint8)
    agent = RainbowAgent(space, TWO, frames=frames, frame_stack=stack, num_envs=num_envs, n_step=3, gamma=0.5, **SMALL)
    rng = np.random.default_rng(0)
    envs = [Numbered(i, stack) for i in range(num_envs)]
    now = np.stack([env.begin() for env in envs])
    records = [[] for _ in envs]
    for _ in range(60):
        actions = rng.integers(2, size=num_envs)
        after = np.stack([env.advance() for env in envs])
        rewards, ends = rng.normal(size=num_envs), rng.random(num_envs)
        terminated, truncated = ends < 0.15, ends > 0.85
        agent.observe(now, actions, rewards, after, terminated, truncated)
        for i in range(num_envs):
            records[i].append(
                (now[i], int(actions[i]), rewards[i], after[i].copy(), bool(terminated[i]), bool(truncated[i]))
            )
            if terminated[i] or truncated[i]:
                after[i] = envs[i].begin()
        now = after
    expected = {}
    for record in records:
        for t in range(len(record)):
            total = 0.0
            for k in range(t, min(t + 3, len(record))):
                _, _, reward, seen, ended, cut = record[k]
                total += 0.5 ** (k - t) * reward
                if ended or cut or k == t + 2:
                    discount = 0.0 if ended else 0.5 ** (k - t + 1)
                    expected[record[t][0].tobytes()] = (record[t][1], total, discount, seen)
                    break
    assert len(agent._replay) == len(expected)
    batch = agent._replay.sample(5000, rng)
    assert len(set(batch.entries.tolist())) == len(expected), "each was sampled"
    for state, action, reward, discount, after in zip(*batch[1:6], strict=True):
        theirs = expected[np.ascontiguousarray(state).tobytes()]
        assert (action, reward, discount) == (theirs[0], pytest.approx(theirs[1], abs=1e-6), pytest.approx(theirs[2]))
        assert (after == theirs[3]).all()


@pytest.mark.parametrize(
    ("keys", "discounts"), [({}, (0.25, 0.5)), ({"timeout_is_terminal": True}, (0, 0))], ids=["default", "terminal"]
)
def test_a_time_limit_is_a_termination_on_request(keys, discounts):
    """Rewards 1 and 2, gamma 1/2, and the limit after them: 1 + 2/2 = 2 and 2. An interruption is no time limit."""
    no, yes = np.array([False]), np.array([True])
    for ends, expected in (((no, yes), discounts), ((no, no), (0.25, 0.5)), ((yes, no), (0, 0))):
        agent = RainbowAgent(VECTOR, TWO, n_step=3, gamma=0.5, **SMALL, **keys)
        looks = [np.full((1, 2), t / 10, np.float32) for t in range(3)]
        agent.observe(looks[0], np.zeros(1, int), np.array([1.0]), looks[1], no, no)
        agent.observe(looks[1], np.zeros(1, int), np.array([2.0]), looks[2], *ends)
        agent.cut(yes)  # changes nothing if the episode has ended
        batch = agent._replay.sample(50, np.random.default_rng(0))
        columns = ((batch.states[:, 0] * 10).round(), batch.rewards, batch.discounts)
        found = set(zip(*(column.tolist() for column in columns), strict=True))
        assert found == {(0, 2, expected[0]), (1, 2, expected[1])}


class Numbered:
    """A stream of images that are all different, stacked as environments stack them."""

    def __init__(self, which, stack):
        self.number, self.stack = which * 1000, stack

    def begin(self):
        self.frames = [np.zeros((4, 4), np.uint8)] * self.stack
        return self.advance()

    def advance(self):
        self.number += 1
        picture = np.frombuffer(self.number.to_bytes(16, "big"), np.uint8).reshape(4, 4)
        self.frames = [*self.frames[1:], picture]
        return np.stack(self.frames, axis=-1) if self.stack > 1 else picture


def test_an_update_weighs_the_losses_and_sets_the_priorities():
    """One step: the gradient is that of mean(weight * cross entropy), the new priorities are roots of the losses."""
    agent = walk(RainbowAgent(VECTOR, TWO, **{**SMALL, "min_size": 60}), VECTOR, 59)
    entries = np.arange(len(agent._replay))
    everything = agent._replay.sample(1, np.random.default_rng(0))._replace(entries=entries)
    agent._replay.update_priorities(everything, np.random.default_rng(0).uniform(0.1, 3, len(entries)))
    batch = copy.deepcopy(agent._replay).sample(SMALL["batch_size"], copy.deepcopy(agent._sample_rng))
    assert batch.weights == pytest.approx(
        (agent._replay._tree[batch.entries] / agent._replay._tree[batch.entries].min()) ** -0.5
    )
    logits = agent._net(torch.from_numpy(batch.states))[np.arange(len(batch.actions)), batch.actions]
    shifted = agent._support.shift(torch.from_numpy(batch.rewards), torch.from_numpy(batch.discounts))
    target = agent._target_distribution(torch.from_numpy(batch.next_states), *shifted)
    losses = -(target * logits.log_softmax(dim=1)).sum(dim=1)
    loss = (torch.from_numpy(batch.weights) * losses).mean()
    gradients = torch.autograd.grad(loss, list(agent._net.parameters()))
    agent._steps = agent._min_size
    agent.update()
    for parameter, gradient in zip(agent._net.parameters(), gradients, strict=True):  # the first mean is 0.1 gradients
        assert agent._optimizer.state[parameter]["exp_avg"].numpy() == pytest.approx(gradient.numpy() / 10, abs=1e-8)
    assert agent._replay._tree[batch.entries] == pytest.approx(losses.detach().sqrt().numpy(), rel=1e-5)


@pytest.mark.parametrize("double", [False, True])
def test_double_q_learning_chooses_with_one_network_and_judges_with_the_other(double):
    agent = RainbowAgent(VECTOR, TWO, double=double, **SMALL)
    atoms = len(agent._support.atoms)
    with torch.no_grad():
        for net, best in ((agent._net, 0), (agent._target, 1)):
            for parameter in net.parameters():
                parameter.zero_()
            bias = net.advantages[-1].bias.view(2, atoms)
            bias[best, -1], bias[1 - best, 0] = 50, 50  # certain of the highest return, and of the lowest
    shifted = agent._support.shift(torch.zeros(1), torch.ones(1))
    target = agent._target_distribution(torch.zeros(1, 2), *shifted)[0]
    assert target.argmax() == (0 if double else atoms - 1), "the target network says that action 0 is the worst"


def test_frames_are_let_go_with_their_transitions():
    agent = RainbowAgent(IMAGE, TWO, **{**SMALL, "capacity": 20, "min_size": 16})
    walk(agent, IMAGE, 300)
    assert len(agent._replay.frames) <= 2 * 20 + 4


def test_epsilon_falls_once_learning_begins():
    agent = RainbowAgent(VECTOR, TWO, min_size=100, epsilon=0.1, epsilon_decay=200, capacity=1000)
    found = {}
    for steps in (0, 99, 100, 200, 300, 1000):
        agent._steps = steps
        found[steps] = agent.epsilon
    assert found == {0: 1, 99: 1, 100: 1, 200: pytest.approx(0.55), 300: pytest.approx(0.1), 1000: pytest.approx(0.1)}


def test_noise_explores_in_place_of_epsilon():
    agent = RainbowAgent(VECTOR, TWO, noisy=True, eval_epsilon=0, **SMALL)
    assert agent.epsilon == 1, "nothing is known yet"
    walk(agent, VECTOR, 20)
    assert agent.epsilon == 0
    observation = np.array([[0.3, -0.2]], np.float32)
    acted = {int(agent.act(observation)[0]) for _ in range(200)}
    judged = {int(agent.act(observation, explore=False)[0]) for _ in range(200)}
    assert acted == {0, 1}
    assert len(judged) == 1, "evaluations are without noise"


def test_evaluations_leave_training_untouched():
    once, twice = (walk(RainbowAgent(VECTOR, TWO, **SMALL), VECTOR, 30) for _ in range(2))
    for _ in range(50):
        once.act(np.zeros((3, 2), np.float32), explore=False)
    walk(once, VECTOR, 20), walk(twice, VECTOR, 20)
    assert (values(once, Corridor.observations) == values(twice, Corridor.observations)).all()


@pytest.mark.thorough
@variants([*NETWORKS, {"timeout_is_terminal": True}])
@pytest.mark.parametrize("space", [VECTOR, IMAGE], ids=["vectors", "images"])
def test_its_state_can_be_saved(space, keys):
    keys = {**SMALL, **keys, "target_period": 7, "eval_epsilon": 0.5}
    one, other = (RainbowAgent(space, TWO, seed=seed, num_envs=2, **keys) for seed in (1, 2))
    walk(one, space, 40, num_envs=2)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for agent in (one, other):
        walk(agent, space, 30, num_envs=2, seed=9)
    for net in ("_net", "_target"):
        for ours, theirs in zip(getattr(one, net).parameters(), getattr(other, net).parameters(), strict=True):
            assert (ours == theirs).all()
    looks = np.zeros((50, *space.shape), space.dtype)
    assert (one.act(looks, explore=False) == other.act(looks, explore=False)).all()


def test_the_target_follows_every_so_many_steps():
    agent = RainbowAgent(VECTOR, TWO, target_period=8, update_period=4, **SMALL)
    same = []
    for seed in range(12):
        walk(agent, VECTOR, 1, seed=seed)  # one update, which stands for four steps
        pairs = zip(agent._net.parameters(), agent._target.parameters(), strict=True)
        same.append(all((a == b).all() for a, b in pairs))
    updates = same[-agent._updates :]
    assert updates == [False, True] * (len(updates) // 2) + [False] * (len(updates) % 2)


def test_actions_may_start_anywhere():
    agent = walk(RainbowAgent(VECTOR, gym.spaces.Discrete(2, start=5), **SMALL), VECTOR, 20)
    assert set(agent.act(np.zeros((50, 2), np.float32)).tolist()) <= {5, 6}
    assert set(agent._replay.sample(50, np.random.default_rng(0)).actions.tolist()) <= {0, 1}


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"vmin": 1.0, "vmax": 1.0}, "vmin"),
        ({"capacity": 8}, "capacity"),
    ],
)
def test_impossible_values_are_refused(keys, key):
    with pytest.raises(BadValueError) as caught:
        RainbowAgent(VECTOR, TWO, **{**SMALL, **keys})
    assert caught.value.key == key


def test_continuous_actions_are_for_another_agent():
    with pytest.raises(UsageError, match="agent=sac"):
        RainbowAgent(VECTOR, gym.spaces.Box(-1, 1, (2,)))


def test_stacks_come_from_a_wrapper():
    env = StackFrames(gym.make("cfn/Gridworld-v0", size=6, image_size=12), 4)
    stack, _ = env.reset(seed=0)
    assert stack.shape == (12, 12, 4)
    assert not stack[..., :3].any()
    after, *_ = env.step(1)
    assert (after[..., 2] == stack[..., 3]).all()
    assert env.observation_space.contains(after)
