"""From single steps to n-step transitions (s_t, a_t, r_t + ... + gamma^(m-1) r_(t+m-1), gamma^m, s_(t+m)).

A window ends with its episode, however that ended, so the last n - 1 steps of an episode give shorter transitions.
They differ in what comes after: nothing once the episode was terminated (the discount is 0), the value of the
episode's own last observation if it was only cut off.
"""

from collections import deque
from typing import Any, Generic, NamedTuple, TypeVar

S = TypeVar("S")


class Transition(NamedTuple, Generic[S]):
    """Learn that Q(state, action) is `reward` + `discount` * V(next_state).

    Attributes:
        state: s_t.
        action: a_t.
        reward: The discounted sum of the m rewards after it.
        discount: gamma^m, or 0 after a termination.
        next_state: s_(t+m).
    """

    state: S
    action: object
    reward: float
    discount: float
    next_state: S


class NStep(Generic[S]):
    """The steps of one environment, of which each becomes the beginning of exactly one transition.

    Args:
        n: Rewards per transition, at most.
        gamma: Discount.
    """

    def __init__(self, n: int, gamma: float) -> None:
        self._n, self._gamma = n, gamma
        self._pending: deque[tuple[S, object, float]] = deque()

    def add(
        self, state: S, action: object, reward: float, next_state: S, terminated: bool, truncated: bool
    ) -> list[Transition[S]]:
        """Take in one step, and return the transitions that it completes."""
        self._pending.append((state, action, reward))
        if terminated or truncated:
            return self.end(next_state, terminated)
        return [self._oldest(next_state)] if len(self._pending) == self._n else []

    def end(self, next_state: S, terminated: bool = False) -> list[Transition[S]]:
        """The episode has ended, or is cut off, at this state: return the transitions of all steps that wait."""
        return [self._oldest(next_state, terminated) for _ in range(len(self._pending))]

    def _oldest(self, next_state: S, terminated: bool = False) -> Transition[S]:
        discounted = 0.0
        for _, _, later in reversed(self._pending):
            discounted = later + self._gamma * discounted
        discount = 0.0 if terminated else self._gamma ** len(self._pending)
        first, taken, _ = self._pending.popleft()
        return Transition(first, taken, discounted, discount, next_state)

    def state_dict(self) -> dict[str, Any]:
        """The steps that wait for their transitions."""
        return {"pending": list(self._pending)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the steps that wait."""
        self._pending = deque(map(tuple, state["pending"]))
