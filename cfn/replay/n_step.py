"""Conversion of steps to n-step transitions (s_t, a_t, r_t + ... + gamma^(m-1) r_(t+m-1), gamma^m, s_(t+m)).

A window ends with its episode, so the last n - 1 steps of an episode give transitions with m < n. After a termination
the discount is 0; after a truncation the value of the episode's final observation is bootstrapped.
"""

from collections import deque
from typing import Any, Generic, NamedTuple, TypeVar

S = TypeVar("S")


class Transition(NamedTuple, Generic[S]):
    """An n-step transition: the target of Q(state, action) is `reward` + `discount` * V(next_state).

    Attributes:
        state: s_t.
        action: a_t.
        reward: Discounted sum of the m rewards from step t on.
        discount: gamma^m, or 0 after a termination.
        next_state: s_(t+m).
        cut: Whether a truncation ended the window early, so m < n.
    """

    state: S
    action: object
    reward: float
    discount: float
    next_state: S
    cut: bool = False


class NStep(Generic[S]):
    """N-step window over the steps of one environment. Each step begins exactly one transition.

    Args:
        n: Maximum number of rewards per transition.
        gamma: Discount factor.
    """

    def __init__(self, n: int, gamma: float) -> None:
        self._n, self._gamma = n, gamma
        self._pending: deque[tuple[S, object, float]] = deque()

    def add(
        self, state: S, action: object, reward: float, next_state: S, terminated: bool, truncated: bool
    ) -> list[Transition[S]]:
        """Add one step, and return the transitions that it completes."""
        self._pending.append((state, action, reward))
        if terminated or truncated:
            return self.end(next_state, terminated)
        return [self._pop_oldest(next_state)] if len(self._pending) == self._n else []

    def end(self, next_state: S, terminated: bool = False) -> list[Transition[S]]:
        """End the episode at this state, and return the transitions of all pending steps."""
        return [self._pop_oldest(next_state, terminated) for _ in range(len(self._pending))]

    def _pop_oldest(self, next_state: S, terminated: bool = False) -> Transition[S]:
        length, total = len(self._pending), 0.0
        for _, _, reward in reversed(self._pending):
            total = reward + self._gamma * total
        discount = 0.0 if terminated else self._gamma**length
        state, action, _ = self._pending.popleft()
        return Transition(state, action, total, discount, next_state, cut=length < self._n and not terminated)

    def state_dict(self) -> dict[str, Any]:
        return {"pending": list(self._pending)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._pending = deque(map(tuple, state["pending"]))
