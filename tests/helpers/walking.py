"""Random walks over numbered looks, as the training loop would show them to a bonus."""

import copy

import gymnasium as gym
import numpy as np
from looks import IMAGES, VECTORS, image, vector

from cfn.bonuses.visits import Visits

ACTIONS = gym.spaces.Discrete(4)


def walk(space, steps, num_envs=2, seed=0, numbers=12, length=7):
    """Yield observations and visits of random steps; episodes of environment i have `length` + i steps."""
    look, rng = {id(IMAGES): image, id(VECTORS): vector}[id(space)], np.random.default_rng(seed)
    here, age = rng.integers(numbers, size=num_envs), np.zeros(num_envs, int)
    for _ in range(steps):
        begins = age == 0
        actions = rng.integers(4, size=num_envs)
        there = (here + actions - 1) % numbers
        age += 1
        ends = age == length + np.arange(num_envs)
        observations, following = (np.stack([look(int(n)) for n in some]) for some in (here, there))
        states, next_states = ([(int(n),) for n in some] for some in (here, there))
        yield observations, Visits(states, actions, following, begins, ends, np.zeros_like(ends), next_states)
        here, age = np.where(ends, rng.integers(numbers, size=num_envs), there), np.where(ends, 0, age)


def assert_resumes(make, space, steps=30, more=20, num_envs=2):
    """A bonus that is loaded from another's state goes on with its numbers; `make` takes a seed."""
    one, other = make(0), make(5)
    steps_of_walk = list(walk(space, steps + more, num_envs))
    for observations, visits in steps_of_walk[:steps]:
        one.observe(observations, visits)
        one.update()
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for observations, visits in steps_of_walk[steps:]:
        assert one.observe(observations, visits).tolist() == other.observe(observations, visits).tolist()
        assert one.update() == other.update()
        asked = [bonus.novelty(observations, visits.states).tolist() for bonus in (one, other)]
        assert asked[0] == asked[1]


def assert_asking_changes_nothing(one, other, space, num_envs=2):
    """Walk with two equal bonuses, one of which is asked for its novelty at every step."""
    for observations, visits in walk(space, 25, num_envs):
        one.novelty(observations, visits.states)
        assert one.observe(observations, visits).tolist() == other.observe(observations, visits).tolist()
        assert one.update() == other.update()
