"""From the steps of N environments to n-step transitions in an agent's replay buffer."""

from typing import Any

import numpy as np

from cfn.replay.n_step import NStep
from cfn.replay.transitions import TransitionReplay
from cfn.types import Array


class Recorder:
    """Each environment has an n-step window of its own; what a window completes goes to the replay.

    An observation is put into the frame store once: as what followed one step, and again, by its slots alone, as what
    the next step began with.

    Args:
        replay: Where transitions go.
        num_envs: Environments that act at once.
        n_step: Rewards per transition.
        gamma: Discount.
    """

    def __init__(self, replay: TransitionReplay, num_envs: int, n_step: int, gamma: float) -> None:
        self._replay = replay
        self._windows = [NStep[Array](n_step, gamma) for _ in range(num_envs)]
        self._states: list[Array | None] = [None] * num_envs  # slots of each environment's current stack

    def add(
        self,
        observations: Array,
        actions: Array,
        rewards: Array,
        next_observations: Array,
        terminated: Array,
        truncated: Array,
    ) -> None:
        """One step of every environment; `next_observations` are the episodes' own, also where they end."""
        frames = self._replay.frames
        for i, (window, ended, cut) in enumerate(
            zip(self._windows, terminated.tolist(), truncated.tolist(), strict=True)
        ):
            state = self._states[i]
            if state is None:
                state = np.array([frames.put(frame) for frame in self._frames_of(observations[i])], np.int32)
            newest = frames.put(self._frames_of(next_observations[i])[-1])
            frames.hold(state[1:])
            next_state = np.array([*state[1:], newest], np.int32)
            for transition in window.add(state, actions[i], float(rewards[i]), next_state, ended, cut):
                self._replay.add(transition)
            if ended or cut:
                frames.release(next_state)
            self._states[i] = None if ended or cut else next_state

    def cut(self, which: Array) -> None:
        """The episodes of these environments are cut off where they are, and what comes next is not of them."""
        for i in np.flatnonzero(which).tolist():
            if (state := self._states[i]) is not None:
                for transition in self._windows[i].end(state):
                    self._replay.add(transition)
                self._replay.frames.release(state)
                self._states[i] = None

    def _frames_of(self, observation: Array) -> list[Array]:
        """The frames that an observation is made of, the newest last."""
        stack = self._replay.stack
        return [observation] if stack == 1 else [observation[..., i] for i in range(stack)]

    def state_dict(self) -> dict[str, Any]:
        """Open windows and current states."""
        return {"windows": [window.state_dict() for window in self._windows], "states": list(self._states)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over open windows and current states."""
        for window, saved in zip(self._windows, state["windows"], strict=True):
            window.load_state_dict(saved)
        self._states = list(state["states"])
