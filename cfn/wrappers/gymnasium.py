"""A bonus for Gymnasium's vector environments, in all three autoreset modes.

The bonus is paid for s_t, the state in which an action is taken, when the action and s_t+1 are known. So each state of
an episode but its last one is counted once. In the mode NEXT_STEP, a step after the end of an episode only resets the
environment: it is no visit, and pays nothing.
"""

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from cfn.bonuses.base import Bonus
from cfn.bonuses.visits import Visits
from cfn.errors import BadInputError, WrongTypeError
from cfn.types import Array, Metrics, State
from cfn.wrappers.payment import Combine, Payment, states_or_none


class BonusVectorWrapper(VectorWrapper):
    """Adds a bonus to the rewards of a vector environment.

    One bonus counts the visits of all environments, and learns every `bonus.update_period` steps. `info` has the two
    parts of the reward as `extrinsic_reward` and `intrinsic_reward`. Wrappers inside this one, such as
    `RecordEpisodeStatistics`, see the extrinsic rewards.

    Args:
        envs: Vector environment.
        bonus: Bonus, made for `envs.single_observation_space`.
        combine: Function from extrinsic and intrinsic rewards to the rewards of a step; by default, their sum.
        key: Entry of Dict observations that the bonus sees.
    """

    def __init__(
        self, envs: VectorEnv[Any, Any, Any], bonus: Bonus, combine: Combine = np.add, key: str | None = None
    ) -> None:
        if not isinstance(envs, VectorEnv):
            raise WrongTypeError(
                f"{type(envs).__name__} is no vector environment. A bonus inside each environment would count only "
                "its own visits, and in processes of their own they could never be joined: wrap the vector "
                "environment, for example gymnasium.make_vec(id, num_envs=1)"
            )
        super().__init__(envs)
        self._payment, self._combine = Payment(bonus, envs.single_observation_space, key), combine
        self._mode = _autoreset_mode(envs)
        if self._mode is AutoresetMode.NEXT_STEP and self.num_envs > 1 and bonus.kind in ("episode", "combination"):
            raise BadInputError(
                "the bonus remembers the episode of each environment, but in the autoreset mode NEXT_STEP some "
                "environments reset while others step: make the environments with AutoresetMode.SAME_STEP"
            )
        self.bonus = bonus
        self._observations: Array | None = None  # s_t, as the bonus sees it
        self._states: list[Any] = [None] * self.num_envs
        self._begins = np.ones(self.num_envs, np.bool_)
        self._ended = np.zeros(self.num_envs, np.bool_)  # in the last step

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all environments, or those that `options["reset_mask"]` names."""
        everything = np.ones(self.num_envs, np.bool_)
        mask = everything if options is None else np.array(options.get("reset_mask", everything))  # a copy
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # a list, too
        self._begins = np.where(mask, True, self._begins)
        self._ended = np.where(mask, False, self._ended)
        self._remember(observations, infos)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Take a step, and return rewards with the bonus of s_t."""
        if self._observations is None:
            raise BadInputError("the environments were not reset: call reset() before step()")
        following, extrinsic, terminated, truncated, infos = self.env.step(actions)
        visited = ~self._ended if self._mode is AutoresetMode.NEXT_STEP else np.ones(self.num_envs, np.bool_)
        intrinsic = np.zeros(self.num_envs)
        intrinsic[visited] = self._pay(visited, actions, following, terminated, truncated, infos)
        self._ended = (terminated | truncated) & visited
        # In the mode NEXT_STEP, the visit after a reset begins an episode; in SAME_STEP, the one after an end.
        self._begins = self._ended if self._mode is AutoresetMode.SAME_STEP else ~visited
        self._remember(following, infos)
        all_rows = np.ones(self.num_envs, np.bool_)
        infos = {
            **infos,
            "extrinsic_reward": np.array(extrinsic),
            "_extrinsic_reward": all_rows,
            "intrinsic_reward": intrinsic,
            "_intrinsic_reward": all_rows,
        }
        return following, self._combine(extrinsic, intrinsic), terminated, truncated, infos

    def take_metrics(self) -> Metrics:
        """Return the means of the bonus's metrics since the last call, such as `bonus/reward` and `bonus/loss`."""
        return self._payment.take_metrics()

    def close(self, **keywords: Any) -> None:
        """Close the environments; another wrapper may then use the bonus."""
        self._payment.release()
        self.env.close(**keywords)

    def save(self, folder: str | Path) -> None:
        """Save the bonus. No pickle is written."""
        self._payment.save(folder)

    def load(self, folder: str | Path) -> None:
        """Restore a saved bonus exactly, made with the same arguments; then reset the environments."""
        self._payment.load(folder)
        self._observations = None

    def _pay(
        self, visited: Array, actions: Any, following: Any, terminated: Array, truncated: Array, infos: dict[str, Any]
    ) -> Array:
        assert self._observations is not None
        rows = np.flatnonzero(visited)
        if not len(rows):  # all environments reset
            return np.zeros(0)
        states = states_or_none([self._states[i] for i in rows])
        visits = Visits(
            states=states,
            actions=actions[rows] if isinstance(actions, np.ndarray) else None,
            next_observations=self._successors(following, infos)[rows],
            begins=self._begins[rows],
            terminated=terminated[rows],
            truncated=truncated[rows],
            next_states=self._next_states(rows, infos),
        )
        return self._payment.pay(self._observations[rows], visits)

    def _next_states(self, rows: Array, infos: dict[str, Any]) -> list[State] | None:
        """Return the true states of s_t+1; where SAME_STEP has reset an environment, they are in `final_info`."""
        ends, last = infos.get("_final_info"), infos.get("final_info", {}).get("state")
        states: list[Any] = []
        for i in rows:
            ended = self._mode is AutoresetMode.SAME_STEP and ends is not None and ends[i]
            found = last if ended else infos.get("state")
            states.append(None if found is None else found[i])
        return states_or_none(states)

    def _successors(self, following: Any, infos: dict[str, Any]) -> Array:
        """Return s_t+1 of every environment: where SAME_STEP has reset one, the last observation of its episode."""
        successors = np.asarray(self._payment.visible(following))
        ends = infos.get("_final_obs")
        if self._mode is AutoresetMode.SAME_STEP and ends is not None and ends.any():
            successors = successors.copy()
            for i in np.flatnonzero(ends):
                successors[i] = self._payment.visible(infos["final_obs"][i])
        return successors

    def _remember(self, observations: Any, infos: dict[str, Any]) -> None:
        """Keep s_t of the next step. A vector environment may reuse its arrays, so this is a copy."""
        self._observations = np.array(self._payment.visible(observations))
        states, known = infos.get("state"), infos.get("_state")
        for i in range(self.num_envs):
            if states is not None and (known is None or known[i]):
                self._states[i] = states[i]


def _autoreset_mode(envs: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    mode = envs.metadata.get("autoreset_mode")
    if mode is None:
        raise BadInputError(
            "the vector environment does not say how it resets environments: set metadata['autoreset_mode'] to one of "
            "gymnasium.vector.AutoresetMode"
        )
    return mode if isinstance(mode, AutoresetMode) else AutoresetMode(mode)
