"""A bonus under examination: it receives visits as from the training loop, and its answers are checked."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from cfn import seeding
from cfn.bonuses.base import Bonus
from cfn.bonuses.visits import Visits
from cfn.config import OFFERED
from cfn.errors import UsageError
from cfn.exam.streams import Stream
from cfn.schema import Component
from cfn.types import Array, State

EPISODE = 50
"""Visits per episode, for bonuses with an episodic memory."""
ACTIONS = 4
"""Number of actions, for bonuses that use them; the action is a function of the state and its successor."""
CHECKED = 4
"""Number of states whose novelty is asked twice, to detect a bonus that changes when it is asked."""


class FaultError(UsageError):
    """A bonus violated its interface, so the question cannot be answered."""


class Maker:
    """Constructs the bonus of a config, once for each time that a question needs a new one.

    Args:
        component: Chosen option of the group `bonus`.
        device: Device of its networks.
    """

    def __init__(self, component: Component, device: torch.device | str = "cpu") -> None:
        self.component, self._device = component, device

    def has(self, key: str) -> bool:
        """Return whether the bonus has a config key."""
        return key in inspect.signature(self.component.target).parameters

    def __call__(self, space: gym.Space[Any], seed: int, **keys: Any) -> Bonus:
        """Return a new bonus for observations of a space; `keys` override its config."""
        offered = {
            "observation_space": space,
            "action_space": gym.spaces.Discrete(ACTIONS),
            "seed": seed,
            "device": self._device,
            "frames": None,
            "steps": None,
            "num_envs": 1,
        }
        component = replace(self.component, keys=self.component.keys | keys)
        offered = {name: offered[name] for name in OFFERED["bonus"] if name in offered}
        return component.make(Bonus, **offered)  # type: ignore[type-abstract]


class Candidate:
    """A bonus and the stream of visits that it sees.

    Args:
        make: Constructs the bonus.
        stream: Stream of visits.
        seed: Seed of the bonus and of the observations.
        keys: Config keys of the bonus to override.
    """

    def __init__(self, make: Maker, stream: Stream, seed: int, **keys: Any) -> None:
        self.bonus = make(stream.space, seeding.integer(seed, "exam", stream.name), **keys)
        if self.bonus.counts_actions:
            raise FaultError("the exam asks about states, but the bonus counts state-action pairs: set bonus.of=state")
        self.stream = stream
        self._noise = seeding.generator(seed, "exam", "looks", stream.name)
        self.visits = 0
        self.updates = 0

    def see(self, visits: Sequence[int], each: Callable[[int], None] | None = None) -> None:
        """Visit states in order, with the updates of the training loop.

        Args:
            visits: States.
            each: Function called with the index of each visit, after the visit and its updates.
        """
        observation = self._look(visits[0]) if len(visits) else None
        for index, state in enumerate(visits):
            after = visits[index + 1] if index + 1 < len(visits) else state
            next_observation = self._look(after)
            place = self.visits % EPISODE
            context = Visits(
                states=[(int(state),)],
                next_states=[(int(after),)],
                actions=np.array([(after - state) % ACTIONS]),
                next_observations=next_observation,
                begins=np.array([place == 0]),
                terminated=np.array([False]),
                truncated=np.array([place == EPISODE - 1]),
            )
            assert observation is not None
            self._check("observe", self.bonus.observe(observation, context), 1)
            self.visits += 1
            if self.visits % self.bonus.update_period == 0:
                self.bonus.update()
                self.updates += 1
            observation = next_observation
            if each is not None:
                each(index)

    def ask(self, states: Iterable[int]) -> Array:
        """Return the bonus's novelty of states; raise `FaultError` if asking twice gives two answers."""
        asked = [int(state) for state in states]
        observations = np.concatenate([self._look(state) for state in asked])
        names: list[State] = [(state,) for state in asked]
        answers = self._check("novelty", self.bonus.novelty(observations, names), len(asked))
        again = self.bonus.novelty(observations[:CHECKED], names[:CHECKED])
        once_more = self.bonus.novelty(observations[:CHECKED], names[:CHECKED])
        if not np.allclose(again, once_more, rtol=1e-3, atol=1e-6):
            raise FaultError("`novelty` changes the bonus: asking twice gives different answers")
        return answers

    def _look(self, state: int) -> Array:
        return self.stream.look(state, self._noise)[None]

    @staticmethod
    def _check(method: str, answer: Any, rows: int) -> Array:
        answers = np.asarray(answer, np.float64)
        if answers.shape != (rows,):
            raise FaultError(f"`{method}` returns an array of shape {answers.shape} instead of ({rows},)")
        if not np.isfinite(answers).all():
            raise FaultError(f"`{method}` returns NaN or infinity")
        return answers
