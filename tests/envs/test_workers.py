"""Environments in several processes are, in every number, those in one; a process that ends is a fault of them all."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from processes import running, stepping

from cfn.envs import making, process
from cfn.envs.arrays import with_arrays
from cfn.envs.batch import BrokenEnvError, EnvBatch
from cfn.envs.deep_sea import DeepSea
from cfn.envs.gridworld import Gridworld
from cfn.errors import UsageError


class Walk(gym.Env):
    """Episodes of random length and reward, with states and reports; at some steps of some episodes, something breaks.

    Args:
        broken: What goes wrong, as `place`: function of the environment, called at this place of an episode with a
            seed that is divisible by three.
    """

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gym.spaces.Discrete(4)
    state_names = ("here", "steps")
    observation_note = "A walk."

    def __init__(self, **broken):
        self.broken, self.failures = broken, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.here, self.steps, self.length = 0, 0, int(self.np_random.integers(2, 9))
        self.breaks = seed % 3 == 0
        self.happens("reset")
        return self.observation, {"state": (self.here, self.steps)}

    def step(self, action):
        self.steps += 1
        self.here += int(action)
        if self.steps == 2:
            self.happens("step")
        truncated = self.steps == self.length
        self.failures += truncated and self.here == 0
        info = {"state": (self.here, self.steps), "episode_metrics": {"explore/here": self.here / 7}}
        return self.observation, float(self.np_random.normal()), self.here > 9, truncated, info

    @property
    def observation(self):
        return np.array([self.here, self.steps, self.np_random.normal()], np.float32)

    def happens(self, place):
        if self.breaks and place in self.broken:
            self.broken[place](self)

    def is_solved(self, episodes, means):
        return episodes > 5 and means["explore/here"] > 0.5


def fail(env):
    raise RuntimeError("it broke")


def no_number(env):
    env.here = float("nan")


def leave(env):
    os._exit(3)


def refuse():
    sys.exit("no licence")  # in a function: other packages replace sys.exit, which then cannot be pickled


def be_killed(env):
    os.kill(os.getpid(), signal.SIGKILL)


ENVIRONMENTS = {
    "walk": Walk,
    "failing steps": partial(Walk, step=fail),
    "failing resets": partial(Walk, reset=fail),
    "gridworld": partial(Gridworld, size=4, image_size=8, action_noise=0.3, max_steps=6),
    "deep sea": partial(DeepSea, size=4, image_size=4, run_seed=0),
    "one hot": lambda: with_arrays(gym.make("FrozenLake-v1")),
    "CartPole": partial(gym.make, "CartPole-v1", max_episode_steps=9),
}


@pytest.fixture
def batch():
    """Make batches that are closed at the end, with the list of their faults."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # other processes cannot import this module
    with contextlib.ExitStack() as closing:
        closing.callback(cloudpickle.unregister_pickle_by_value, sys.modules[__name__])

        def make(make, num_envs=5, workers=2, seed=0):
            faults = []
            made = EnvBatch(make, num_envs, seed, lambda fault: faults.append(str(fault)), workers)
            closing.callback(made.close)
            made.faults = faults
            return made

        yield make


def plain(value):
    """A state or a result as nested lists, with the types of its arrays."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return (value.dtype.str, value.tolist()) if isinstance(value, np.ndarray) else value


def played(envs, steps, seed=0):
    """Everything that a batch says while random actions are taken."""
    rng, said = np.random.default_rng(seed), []
    for _ in range(steps):
        try:
            said.append(plain(envs.begin_episodes()))
        except BrokenEnvError as error:  # several resets in a row have failed; a run would stop
            said.append((str(error), plain(envs.state_dict())))
            continue
        said.append(plain(envs.begins))
        actions = [envs.action_space.start + rng.integers(envs.action_space.n) for _ in envs.begins]
        said.append(plain(envs.step(np.array(actions))))
        said.append((plain(envs.state_dict()), envs.failures, envs.episode_metrics, list(envs.faults)))
    return said


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize(("num_envs", "processes"), [(5, 2), (3, 3)])
def test_the_number_of_processes_changes_no_number(batch, name, num_envs, processes):
    one = batch(ENVIRONMENTS[name], num_envs, 1)
    several = batch(ENVIRONMENTS[name], num_envs, processes)
    assert several.observation_space == one.observation_space
    assert several.action_space == one.action_space
    assert (several.state_names, several.observation_note) == (one.state_names, one.observation_note)
    assert played(several, 40) == played(one, 40)
    assert several.step_limit == one.step_limit
    assert bool(one.faults) == name.startswith("failing")


def test_nan_is_a_fault_of_its_environment(batch):
    make = partial(Walk, step=no_number)
    one, several = batch(make, workers=1), batch(make)
    assert played(several, 40) == played(one, 40)
    assert "failed in step() (ValueError: its observation holds NaN or infinity)" in several.faults[0]
    assert {fault.split(" failed")[0] for fault in several.faults} > {"environment 0 of 5", "environment 4 of 5"}


@pytest.mark.parametrize("name", ["walk", "failing steps", "gridworld", "deep sea"])
@pytest.mark.parametrize("counts", [(1, 2), (2, 1), (2, 3)], ids=str)
def test_a_state_is_restored_with_another_number_of_processes(batch, name, counts):
    before, after = counts
    whole, broken = (batch(ENVIRONMENTS[name], workers=workers) for workers in (1, before))
    played(whole, 21)
    played(broken, 21)
    resumed = batch(ENVIRONMENTS[name], workers=after)
    resumed.begin_episodes()  # as a run does before it is restored
    resumed.load_state_dict(broken.state_dict())
    assert not resumed.lost.any()
    first = len(whole.faults)
    again, expected = played(resumed, 20, seed=1), played(whole, 20, seed=1)
    without_faults = [part[:3] if isinstance(part, tuple) and len(part) == 4 else part for part in again]
    assert without_faults == [part[:3] if isinstance(part, tuple) and len(part) == 4 else part for part in expected]
    assert resumed.faults == whole.faults[first:]


class Drifting(Walk):
    """Observes its process: no episode can be restored in another one."""

    @property
    def observation(self):
        return np.array([self.here, self.steps, os.getpid()], np.float32)


def test_environments_that_cannot_be_restored_begin_new_episodes(batch, caplog):
    envs, other = batch(Drifting), batch(Drifting)
    envs.begin_episodes()
    envs.step(np.zeros(5, int))
    other.load_state_dict(envs.state_dict())
    assert other.lost.all()
    assert "Environment 4 could not be restored" in caplog.text
    assert other.begin_episodes()[0][:, 1].tolist() == [0] * 5


def walked_until(envs, condition, steps=60):
    """The outcomes of steps until a condition is met."""
    outcomes = []
    for _ in range(steps):
        envs.begin_episodes()
        outcomes.append(envs.step(np.ones(len(envs.begins), int)))
        if condition():
            return outcomes
    raise AssertionError("it did not come to this")


@pytest.mark.parametrize(
    ("how", "reason"), [(leave, "ended with exit code 3"), (be_killed, "was killed by SIGKILL")], ids=["exit", "kill"]
)
def test_a_process_that_ends_in_a_step_is_a_fault_of_its_environments(batch, caplog, how, reason):
    envs = batch(partial(Walk, step=how), num_envs=6, workers=3)
    before = plain(envs.begin_episodes()[0])
    outcomes = walked_until(envs, lambda: envs.faults)
    first = int(envs.faults[0].split()[1])
    dead = {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3], 4: [4, 5], 5: [4, 5]}[first]
    sentence = f"environment {{}} of 6 failed in step() (the process of environments {dead[0]} to {dead[1]} {reason})"
    assert envs.faults[:2] == [sentence.format(i) for i in dead]
    assert envs.failures >= 2
    assert outcomes[-1].truncated[dead].all()
    assert not outcomes[-1].terminated[dead].any()
    if len(outcomes) == 1:
        assert plain(outcomes[-1].next_observations[dead]) == plain(np.array(before[1])[dead])
    assert caplog.text.count("failed in step()") <= len(envs.faults) / 2, "one line for each process"
    walked_until(envs, lambda: len(envs.faults) > 8)


def test_a_process_that_ends_in_a_reset_is_a_fault_of_all_its_environments(batch):
    envs = batch(partial(Walk, reset=leave), num_envs=4, workers=2)
    seen = []

    def both():
        seen[:] = [fault.split("(")[0] for fault in envs.faults]
        return any("reset" in fault for fault in seen) and any("step" in fault for fault in seen)

    for _ in range(200):
        try:
            walked_until(envs, both, 200)
            break
        except BrokenEnvError:  # three in a row
            continue
    assert both()


def test_a_process_that_always_ends_stops_and_can_be_resumed(batch, tmp_path):
    trap = tmp_path / "trap"

    class Trapped(Walk):
        def reset(self, **keys):
            if trap.exists():
                os._exit(5)
            return super().reset(**keys)

    envs, resumed = batch(Trapped), batch(Trapped)
    envs.begin_episodes()
    trap.touch()
    with pytest.raises(BrokenEnvError, match=r"of 5 failed in reset\(\) \(the process of .* ended with exit code 5\)"):
        walked_until(envs, lambda: False)
    trap.unlink()
    resumed.load_state_dict(envs.state_dict())
    assert not resumed.lost.any(), "those that were in the middle of an episode continue it"
    played(resumed, 10)


def test_a_process_that_cannot_be_started_again_is_a_sentence(batch, tmp_path):
    trap = tmp_path / "trap"

    class Trapped(Walk):
        def __init__(self):
            super().__init__(step=leave)
            if trap.exists():
                raise RuntimeError("no licence")

    envs = batch(Trapped)
    envs.begin_episodes()
    trap.touch()
    with pytest.raises(UsageError, match=r"RuntimeError: no licence") as caught:
        walked_until(envs, lambda: False)
    assert not isinstance(caught.value, BrokenEnvError)


def test_a_killed_process_is_replaced_between_two_steps(batch):
    envs, other = batch(Walk), batch(Walk, workers=1)
    played(envs, 3)
    played(other, 3)
    envs.begin_episodes()
    other.begin_episodes()
    os.kill(envs.copies._processes[1]._process.pid, signal.SIGKILL)
    outcome, expected = (one.step(np.ones(5, int)) for one in (envs, other))
    assert outcome.truncated[2:].all()
    assert plain(outcome.next_observations[:2]) == plain(expected.next_observations[:2])
    assert envs.failures == other.failures + 3
    envs.begin_episodes()
    assert envs.step(np.ones(5, int)).rewards.all()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (partial(Walk, lock=threading.Lock()), r"cannot be sent to another process \(TypeError: "),
        (partial(gym.make, "Nothing-v0"), "an environment failed in its process: NameNotFound: "),
        (partial(os._exit, 7), "the environments cannot be created: the process of environments 0 to 1 .* exit code 7"),
        (refuse, "an environment failed in its process: SystemExit: no licence"),
        (partial(gym.make, "CartPole-v1", colour=1), "unexpected keyword argument 'colour'"),
    ],
    ids=["pickle", "id", "end", "exit", "argument"],
)
def test_an_environment_that_cannot_be_made_is_a_sentence(batch, make, sentence):
    before = stepping()
    with pytest.raises(UsageError, match=sentence):
        batch(make)
    assert set(stepping()) <= set(before)


def test_what_cannot_be_sent_back_is_a_sentence(batch):
    class Odd(Walk):
        def step(self, action):
            *others, info = super().step(action)
            return *others, info | {"episode_metrics": {"explore/here": lambda: 1}}

    with pytest.raises(UsageError, match=r"cannot be sent to another process .*: use env_workers=1"):
        walked_until(batch(Odd), lambda: False)


def ids_of(envs):
    return [one._process.pid for one in envs.copies._processes]


def exists(pid):
    return Path(f"/proc/{pid}").exists()


def test_no_process_is_left(batch):
    envs, forgotten = batch(Walk), EnvBatch(Walk, 4, 0, workers=2)
    pids = ids_of(envs) + ids_of(forgotten)
    assert all(map(exists, pids))
    envs.close()
    envs.close()
    del forgotten
    assert not any(map(exists, pids))


def test_an_environment_that_does_not_return_is_killed(batch, monkeypatch):
    class Slow(Walk):
        def close(self):
            time.sleep(100)

    monkeypatch.setattr(process, "CLOSING_SECONDS", 0.3)
    envs = batch(Slow)
    pids, start = ids_of(envs), time.monotonic()
    envs.close()
    assert time.monotonic() - start < 10
    assert not any(map(exists, pids))


def test_environments_are_closed(batch, tmp_path):
    class Closing(Walk):
        def close(self):
            (tmp_path / str(id(self))).touch()

    envs = batch(Closing, num_envs=3)
    envs.begin_episodes()
    envs.close()
    assert 1 < len(list(tmp_path.iterdir())) <= 3, "other processes may have the same ids"


PARENT = """
import os, sys, time
from cfn.envs.batch import EnvBatch
from cfn.envs.gridworld import Gridworld
envs = EnvBatch(Gridworld, 4, 0, workers=2)
print(*[one._process.pid for one in envs.copies._processes], flush=True)
for _ in range(int(sys.argv[1])):
    envs.begin_episodes()
    envs.step(__import__("numpy").zeros(4, int))
"""


@pytest.mark.process
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "not closed"])
def test_no_process_survives_its_run(killed):
    """Not if it is killed in a step, and not if it ends without a word."""
    steps = str(10**9 if killed else 3)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, steps], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    if killed:
        assert all(map(exists, pids))
        parent.kill()
    assert parent.wait(30) == (-signal.SIGKILL if killed else 0)
    parent.stdout.close()
    deadline = time.monotonic() + 30
    while any(map(running, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_signals_are_for_the_run(batch):
    envs = batch(Walk)
    envs.begin_episodes()
    for pid in ids_of(envs):
        for number in process.SIGNALS:
            os.kill(pid, number)
    assert not envs.step(np.zeros(5, int)).truncated.all()
    assert not envs.faults


def test_messages_are_logged_by_the_run_and_warnings_once(batch, caplog):
    class Talking(Walk):
        def reset(self, **keys):
            gym.logger.warn("What an odd walk.")
            logging.getLogger("walks").warning("a walk of %s begins", "a user")
            logging.getLogger("walks").debug("unheard")
            return super().reset(**keys)

    caplog.set_level(logging.INFO)
    batch(Talking, num_envs=4).begin_episodes()
    said = [(record.name, record.getMessage()) for record in caplog.records]
    assert said.count(("walks", "a walk of a user begins")) == 4
    assert said.count(("cfn.envs.notices", "Gymnasium: What an odd walk.")) == 1
    assert "unheard" not in caplog.text


def test_what_an_environment_prints_is_seen(batch, capfd):
    class Talking(Walk):
        def reset(self, **keys):
            print("here I am")
            return super().reset(**keys)

    batch(Talking, num_envs=4).begin_episodes()
    assert capfd.readouterr().out.count("here I am\n") == 4


def test_a_process_imports_no_pytorch(batch):
    class Importing(Walk):
        observation_note = ""

        def __init__(self):
            super().__init__()
            self.observation_note = " ".join({"torch", "hydra", "matplotlib"} & sys.modules.keys())

    assert batch(Importing).observation_note == ""


def test_environments_that_draw_from_global_generators_repeat_themselves(batch):
    class Drawing(Walk):
        @property
        def observation(self):
            return np.random.normal(size=3).astype(np.float32)

    first, again, other = (batch(Drawing, seed=seed).begin_episodes()[0] for seed in (0, 0, 1))
    assert (first == again).all()
    assert not (first == other).any()
    assert len(np.unique(first)) == first.size


def test_the_environment_of_a_run_can_be_sent(batch):
    from composing import composed

    config, _ = composed("env=gridworld_small", "frame_stack=3")
    envs = batch(partial(making.make, config.env, config.frame_stack, 0))
    assert envs.begin_episodes()[0].shape == (5, 21, 21, 3)
