"""Recording of the steps of N environments as n-step transitions in a replay buffer."""

from typing import Any

import numpy as np

from cfn.replay.n_step import NStep, Transition
from cfn.replay.transitions import TransitionReplay
from cfn.types import Array


class Recorder:
    """One n-step window per environment, whose completed transitions are added to the replay buffer.

    An observation is put into the frame store once, as the end of a step. The next step reuses its slots.

    Args:
        replay: Replay buffer of the transitions.
        num_envs: Number of environments.
        n_step: Rewards per transition.
        gamma: Discount factor.
        keep_cut_windows: Whether to store transitions that a truncation ended after fewer than `n_step` rewards.
    """

    def __init__(
        self, replay: TransitionReplay, num_envs: int, n_step: int, gamma: float, keep_cut_windows: bool = True
    ) -> None:
        self._replay, self._keep_cut_windows = replay, keep_cut_windows
        self._windows = [NStep[Array](n_step, gamma) for _ in range(num_envs)]
        self._states: list[Array | None] = [None] * num_envs  # slots of the current observations

    def add(
        self,
        observations: Array,
        actions: Array,
        rewards: Array,
        next_observations: Array,
        terminated: Array,
        truncated: Array,
    ) -> None:
        """Add one step of every environment; `next_observations` has the final observations of episodes that end."""
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
            self._store(window.add(state, actions[i], float(rewards[i]), next_state, ended, cut))
            if ended or cut:
                frames.release(next_state)
            self._states[i] = None if ended or cut else next_state

    def cut(self, which: Array) -> None:
        """Truncate the current episodes of these environments (True) at their last observations."""
        for i in np.flatnonzero(which).tolist():
            if (state := self._states[i]) is not None:
                self._store(self._windows[i].end(state))
                self._replay.frames.release(state)
                self._states[i] = None

    def _store(self, transitions: list[Transition[Array]]) -> None:
        for transition in transitions:
            if self._keep_cut_windows or not transition.cut:
                self._replay.add(transition)
            else:  # the replay buffer would have taken these references
                self._replay.frames.release(transition.state)

    def _frames_of(self, observation: Array) -> list[Array]:
        """Return the frames of an observation, the newest last."""
        stack = self._replay.stack
        return [observation] if stack == 1 else [observation[..., i] for i in range(stack)]

    def state_dict(self) -> dict[str, Any]:
        return {"windows": [window.state_dict() for window in self._windows], "states": list(self._states)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for window, saved in zip(self._windows, state["windows"], strict=True):
            window.load_state_dict(saved)
        self._states = list(state["states"])
