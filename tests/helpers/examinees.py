"""Bonuses to examine: right ones, wrong ones and broken ones."""

import numpy as np

from cfn.bonuses.base import Bonus


class Tabular(Bonus):
    """Counts true states; `power` 0.5 is right."""

    def __init__(self, power: float = 0.5, window: int = 0):
        self.power, self.window, self.visits = power, window, []

    def observe(self, observations, visits=None):
        self.visits += visits.states
        if self.window:
            self.visits = self.visits[-self.window :]
        return self.novelty(observations, visits.states)

    def novelty(self, observations, states=None):
        counts = {}
        for state in self.visits:
            counts[state] = counts.get(state, 0) + 1
        return np.array([max(counts.get(state, 0), 1) ** -self.power for state in states])


class Blind(Bonus):
    """Ignores its input: decays with all visits."""

    def __init__(self):
        self.total = 0

    def observe(self, observations, visits=None):
        self.total += len(observations)
        return self.novelty(observations)

    def novelty(self, observations, states=None):
        return np.full(len(observations), max(self.total, 1) ** -0.5)


class Broken(Tabular):
    """Breaks one rule of the contract."""

    def __init__(self, fault: str = "raises", only_images: bool = False):
        super().__init__()
        self.fault = fault

    def novelty(self, observations, states=None):
        answers = super().novelty(observations, states)
        if self.fault == "raises":
            raise ZeroDivisionError("by zero")
        if self.fault == "nan" or (self.fault == "nan on vectors" and observations.ndim == 2):
            answers[0] = np.nan
        if self.fault == "shape":
            return answers[:, None]
        if self.fault == "changes":
            self.visits += states
        return answers
